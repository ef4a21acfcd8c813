import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** A process of this bench that answers questions. */
export class Child implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #open = new Map<number, { resolve: (answer: unknown) => void; reject: (error: Error) => void }>()
  #asked = 0

  /** `program` is relative to `bench/`. */
  static start(program: string, flags: readonly string[] = []): Child {
    const execArgv = [...process.execArgv, ...flags]
    return new Child(fork(join(import.meta.dirname, '..', program), [], { execArgv, serialization: 'advanced' }))
  }

  private constructor(child: ChildProcess) {
    this.#process = child
    child.on('message', (message) => this.#take(message as Answer))
    child.once('exit', (code) => {
      for (const { reject } of this.#open.values()) reject(new Error(`${child.spawnargs.at(-1)} ended with ${code}`))
    })
  }

  ask<T>(question: string, about: object = {}): Promise<T> {
    const id = ++this.#asked
    if (this.#process.connected) this.#process.send({ id, question, about })
    else return Promise.reject(new Error(`${this.#process.spawnargs.at(-1)} has ended`))
    return new Promise<T>((resolve, reject) => {
      this.#open.set(id, { resolve: resolve as (answer: unknown) => void, reject })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }

  #take({ id, answer, error }: Answer): void {
    const asked = this.#open.get(id)
    this.#open.delete(id)
    if (error === undefined) asked?.resolve(answer)
    else asked?.reject(new Error(error))
  }
}

interface Answer {
  id: number
  answer?: unknown
  error?: string
}
