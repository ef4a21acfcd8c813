import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { builtCommand } from './command-path.ts'
import { bytesOf, type Key } from './keys.ts'
import type { TerminalOptions } from './terminal.ts'

const run = promisify(execFile)

/** The same inside tmux, which is a terminal of its own and shows what it makes of what it is sent. */
export async function startTmux(options: Pick<TerminalOptions, 'home' | 'args' | 'columns' | 'rows'>): Promise<Tmux> {
  const { home, args = [], columns = 100, rows = 30 } = options
  const server = `tapetree-${randomUUID()}`
  const env = { ...home.env, TERM: 'screen-256color', LANG: 'C.UTF-8' }
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  await tmux(server, [
    ...['-f', '/dev/null', '-u', 'new-session', '-d', '-x', String(columns), '-y', String(rows), '-c', home.cwd],
    ...[...variables, '--', ...builtCommand, ...args],
  ])
  // In control mode tmux tells of all that is written, so that nobody has to look again and again.
  const control = spawn('tmux', ['-L', server, '-C', 'attach'], { stdio: ['pipe', 'pipe', 'ignore'] })
  return new Tmux(server, control)
}

export class Tmux implements AsyncDisposable {
  readonly #server: string
  readonly #control: ChildProcess

  constructor(server: string, control: ChildProcess) {
    this.#server = server
    this.#control = control
  }

  async screen(): Promise<string> {
    return `${(await tmux(this.#server, ['capture-pane', '-p'])).trimEnd()}\n`
  }

  /** The title of the terminal. */
  async title(): Promise<string> {
    return (await tmux(this.#server, ['display-message', '-p', '#{pane_title}'])).trimEnd()
  }

  async type(text: string): Promise<void> {
    await tmux(this.#server, ['send-keys', '-l', '--', text])
  }

  async press(key: Key): Promise<void> {
    const bytes = [...Buffer.from(bytesOf(key))].map((byte) => byte.toString(16))
    await tmux(this.#server, ['send-keys', '-H', ...bytes])
  }

  async resize(columns: number, rows: number): Promise<void> {
    await tmux(this.#server, ['resize-window', '-x', String(columns), '-y', String(rows)])
  }

  async waitFor(text: string, { timeoutMs = 30_000 } = {}): Promise<void> {
    const deadline = AbortSignal.timeout(timeoutMs)
    let screen = ''
    for (;;) {
      const news = this.#news(deadline)
      screen = await this.screen().catch(() => 'tmux has ended\n')
      if (screen.includes(text)) return
      if (deadline.aborted || screen === 'tmux has ended\n') break
      await news
    }
    throw new Error(`Not in sight: ${JSON.stringify(text)} after ${timeoutMs} ms. The screen:\n${screen}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#control.kill()
    await tmux(this.#server, ['kill-server']).catch(() => undefined) // it ends by itself with its last command
  }

  #news(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#control.stdout?.off('data', done)
        deadline.removeEventListener('abort', done)
        resolve()
      }
      this.#control.stdout?.once('data', done)
      deadline.addEventListener('abort', done, { once: true })
    })
  }
}

async function tmux(server: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run('tmux', ['-L', server, ...args], { timeout: 10_000 })
  return stdout
}
