import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { builtCommand } from './command-path.ts'
import type { TerminalOptions } from './terminal.ts'

export interface CommandEnd {
  /** 128 and the number of the signal, where one has ended it. */
  code: number
  stdout: string
  stderr: string
}

export interface CommandOptions extends Pick<TerminalOptions, 'home' | 'env' | 'command'> {
  args: readonly string[]
  /** What is piped into it; absent: nothing is, and stdin is at its end. `open`: it is written to later. */
  stdin?: string | { type: 'open' }
  timeoutMs?: number
}

/** Runs the command to its end, as a script would: without a terminal. */
export async function runCommand(options: CommandOptions): Promise<CommandEnd> {
  return startCommand(options).ended
}

export function startCommand(options: CommandOptions): Command {
  const { home, env = {}, args, stdin = '', command = builtCommand, timeoutMs = 60_000 } = options
  const [program, ...first] = command
  const child = spawn(program, [...first, ...args], {
    cwd: home.cwd,
    env: { ...home.env, ...env },
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  })
  if (typeof stdin === 'string') child.stdin.end(stdin)
  return new Command(child, args)
}

export class Command implements AsyncDisposable {
  readonly ended: Promise<CommandEnd>
  readonly #child: ChildProcessWithoutNullStreams
  readonly #args: readonly string[]
  readonly #said = { stdout: '', stderr: '' }

  constructor(child: ChildProcessWithoutNullStreams, args: readonly string[]) {
    this.#child = child
    this.#args = args
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => (this.#said[name] += chunk))
    }
    // Whoever is killed does not read any more.
    child.stdin.on('error', () => undefined)
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) =>
        resolve({ code: code ?? 128 + (signalNumbers[signal ?? ''] ?? 0), ...this.#said }),
      )
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  get stdout(): string {
    return this.#said.stdout
  }

  get stderr(): string {
    return this.#said.stderr
  }

  writeLine(value: unknown): void {
    this.#child.stdin.write(`${JSON.stringify(value)}\n`)
  }

  endInput(): void {
    this.#child.stdin.end()
  }

  /** Resolves as soon as it has said so. Fails when it has ended without. */
  async untilSaid(
    words: string | RegExp | ((said: string) => boolean),
    stream: 'stdout' | 'stderr' = 'stdout',
  ): Promise<void> {
    const isSaid = (): boolean => {
      const said = this.#said[stream]
      if (typeof words === 'function') return words(said)
      return typeof words === 'string' ? said.includes(words) : words.test(said)
    }
    while (!isSaid()) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      const more = (): void => resolve(true)
      this.#child[stream].once('data', more)
      const goesOn = await Promise.race([promise, this.ended.then(() => false)])
      this.#child[stream].off('data', more)
      if (!goesOn && !isSaid()) {
        const { stdout, stderr } = this.#said
        throw new Error(
          `\`tapetree ${this.#args.join(' ')}\` has ended and did not say ${String(words)}:\n${stdout.slice(-2000)}\n${stderr.slice(-2000)}`,
        )
      }
    }
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<CommandEnd> {
    this.#child.kill(signal)
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}

const signalNumbers: Partial<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }
