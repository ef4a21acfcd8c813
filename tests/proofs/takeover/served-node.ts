import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { untilStopped } from '../pg-faults/processes.ts'
import type { NodeOptions, Order, Word } from './words.ts'

const ownProgram = fileURLToPath(new URL('node-process.ts', import.meta.url))

/** A server of a service in another process, seen from whoever is going to kill it. */
export class ServedNode {
  readonly name: string
  url = ''
  /** The end of what it has written to its log. */
  lastOutput = ''
  /** What its log says about sessions that it took over. */
  readonly recoveries: string[] = []
  readonly #child: ChildProcess
  readonly #loaded = Promise.withResolvers<void>()
  readonly #serving = Promise.withResolvers<string>()
  readonly #closed: Promise<void>
  #status = Promise.withResolvers<number>()

  /**
   * It loads the program, and waits until it is told to serve. `enter` starts it on another machine, `program` is that of
   * another build.
   */
  constructor(name: string, options: { compileCache: string; enter?: readonly string[]; program?: string }) {
    const { compileCache, enter = [], program = ownProgram } = options
    this.name = name
    const command: string[] = [...enter, process.execPath, '-C', '@tapetree/source', program]
    const [first = '', ...rest] = command
    const child = spawn(first, rest, {
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child = child
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.lastOutput = (this.lastOutput + chunk).slice(-4000)
      this.recoveries.push(...chunk.split('\n').filter((line) => line.includes('"recovered"')))
    })
    child.on('message', (word: Word) => this.#hear(word))
    this.#closed = once(child, 'close').then(([code, signal]) => {
      const failure = new Error(`server ${name} ended with ${String(signal ?? code)}: ${this.lastOutput}`)
      for (const { reject } of [this.#loaded, this.#serving, this.#status]) reject(failure)
    })
    // If it is killed before it is asked for anything, nobody waits.
    for (const { promise } of [this.#loaded, this.#serving, this.#status]) promise.catch(() => undefined)
  }

  /** Resolves when it takes requests. */
  async serve(options: Omit<NodeOptions, 'node'>): Promise<void> {
    await this.#loaded.promise
    this.#tell({ type: 'serve', node: this.name, ...options })
    this.url = await this.#serving.promise
  }

  /** How many of its sessions are at work. */
  async working(): Promise<number> {
    this.#status = Promise.withResolvers()
    this.#tell({ type: 'look' })
    return this.#status.promise
  }

  /** `SIGSTOP`. Resolves when it has stopped. */
  async pause(): Promise<void> {
    this.#child.kill('SIGSTOP')
    await untilStopped(this.#child.pid ?? 0)
  }

  wakeUp(): void {
    this.#child.kill('SIGCONT')
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  #tell(order: Order): void {
    this.#child.send(order)
  }

  #hear(word: Word): void {
    switch (word.type) {
      case 'loaded':
        this.#loaded.resolve()
        return
      case 'serving':
        this.#serving.resolve(word.url)
        return
      case 'status':
        this.#status.resolve(word.working)
        return
      default:
        word satisfies never
    }
  }
}
