import childProcess, { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

/** What the product passes to `execFile`. */
interface Command {
  file: string
  args: readonly string[]
  options: { cwd: string; env: Readonly<Record<string, string>>; signal: AbortSignal }
  input: string | Buffer | undefined
}

type Done = (error: (Error & { code: number }) | null, output: Buffer, faults: Buffer) => void

/**
 * Shells that stay and start the programs for this process. To start one copies the page tables of the process that does it:
 * for Node that takes longer than most git commands, for a shell next to nothing. A program gets the same arguments,
 * variables, folder and input, and as many run at once.
 */
export class Shells {
  readonly #folder: string
  readonly #idle: Shell[] = []
  #count = 0
  #isEnded = false

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Replaces `execFile` during this work. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const { execFile } = childProcess
    const throughShell = (file: string, args: Command['args'], options: Command['options'], done: Done): unknown => {
      const end = async (input: Command['input']): Promise<void> => {
        done(...(await this.#run({ file, args, options, input })))
      }
      return { stdin: { on: () => undefined, end } }
    }
    replaceExecFile(throughShell)
    try {
      return await work()
    } finally {
      replaceExecFile(execFile)
    }
  }

  end(): void {
    this.#isEnded = true
    for (const shell of this.#idle) shell.end()
  }

  async #run(command: Command): Promise<Parameters<Done>> {
    const shell = this.#idle.pop() ?? new Shell(join(this.#folder, String(++this.#count)))
    const ran = await shell.run(command)
    this.#idle.push(shell)
    if (this.#isEnded) shell.end()
    return ran
  }
}

function replaceExecFile(execFile: unknown): void {
  Object.assign(childProcess, { execFile })
  syncBuiltinESMExports()
}

class Shell {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #folder: string
  #running: { resolve: (code: number) => void; reject: (error: Error) => void } | undefined

  constructor(folder: string) {
    mkdirSync(folder, { recursive: true })
    this.#folder = folder
    this.#child = spawn('/bin/sh', [], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin.write('unset PWD OLDPWD\n')
    this.#child.stdout.on('data', (code: Buffer) => this.#running?.resolve(Number(code.toString('latin1'))))
    this.#child.on('exit', () => this.#running?.reject(new Error('A shell has ended.')))
  }

  async run({ file, args, options, input }: Command): Promise<Parameters<Done>> {
    const { cwd, env, signal } = options
    if (cwd !== '/' || signal.aborted) throw new Error(`A shell cannot start ${file} in ${cwd}.`)
    const [from, to, faults] = ['input', 'output', 'faults'].map((name) => join(this.#folder, name)) as Three
    writeFileSync(from, input ?? '')
    const variables = Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`)
    const words = [...variables, ...[file, ...args].map(quoted)].join(' ')
    const code = await new Promise<number>((resolve, reject) => {
      this.#running = { resolve, reject }
      this.#child.stdin.write(`${words} <${quoted(from)} >${quoted(to)} 2>${quoted(faults)}; echo $?\n`)
    })
    this.#running = undefined
    const error = code === 0 ? null : Object.assign(new Error(`${file} failed.`), { code })
    return [error, readFileSync(to), readFileSync(faults)]
  }

  end(): void {
    this.#child.stdin.end()
  }
}

type Three = [string, string, string]

function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
