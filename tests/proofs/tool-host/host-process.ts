import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))

export interface HostProcessOptions {
  name: string
  /** What it offers as `app`. */
  folder: string
  /** Its files. */
  home: string
  url: string
  compileCache: string
}

/** `tapetree tool-host` in a process of its own, made to be killed. */
export class HostProcess {
  /** When it was killed, each time. */
  readonly kills: number[] = []
  readonly options: HostProcessOptions
  lastOutput = ''
  #child: ChildProcess
  #closed: Promise<unknown>

  constructor(options: HostProcessOptions) {
    this.options = options
    ;({ child: this.#child, closed: this.#closed } = this.#spawn())
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** `kill -9`, and a new start. The commands that it has started go on. */
  async killAndRestart(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (signal === 'SIGKILL') this.kills.push(Date.now())
    this.#child.kill(signal)
    await this.#closed
    ;({ child: this.#child, closed: this.#closed } = this.#spawn())
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  #spawn(): { child: ChildProcess; closed: Promise<unknown> } {
    const { name, folder, home, url, compileCache } = this.options
    const args = ['tool-host', '--connect', url, '--workspace', `app=${folder}`, '--name', name, '--token', 'any']
    const child = spawn(process.execPath, ['-C', '@tapetree/source', program, ...args, '--permission-mode', 'auto'], {
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache, TAPETREE_HOME: home, HOME: home },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.lastOutput = (this.lastOutput + chunk).slice(-2000)
    })
    return { child, closed: once(child, 'close') }
  }
}
