import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Task, Word } from './words.ts'

const program = fileURLToPath(new URL('server-process.ts', import.meta.url))

export type Ready = Word & { type: 'ready' }

/** A server in another process, seen from whoever is going to kill it. */
export class KillableServer {
  readonly #child: ChildProcess
  readonly #loaded = Promise.withResolvers<void>()
  #ready = Promise.withResolvers<Ready>()
  readonly #closed: Promise<void>

  constructor(compileCache: string) {
    const child = fork(program, {
      execArgv: ['-C', '@tapetree/source'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      silent: true,
    })
    this.#child = child
    let complaint = ''
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
    child.on('message', (word: Word) => {
      if (word.type === 'loaded') this.#loaded.resolve()
      else this.#ready.resolve(word)
    })
    this.#closed = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        const failure = new Error(`the server ended with ${signal ?? code}: ${complaint.slice(0, 2000)}`)
        this.#loaded.reject(failure)
        this.#ready.reject(failure)
        resolve()
      })
    })
    // Killed before it was told anything: nobody asks.
    this.#loaded.promise.catch(() => undefined)
    this.#ready.promise.catch(() => undefined)
  }

  /** Resolves when it lets clients in. */
  async host(task: Task): Promise<Ready> {
    await this.#loaded.promise
    this.#ready = Promise.withResolvers()
    this.#child.send(task)
    return this.#ready.promise
  }

  /** As `kill -9` does. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}
