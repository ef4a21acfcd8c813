import { Worker } from 'node:worker_threads'
import type { Job, Tally } from './jobs.ts'
import type { Base } from './scene.ts'

/** Two proofs run side by side, and others want to work too. */
const maxThreads = 2
/** A case takes milliseconds. One that takes this long is not slow: something goes round and round. */
const silenceMs = 30_000
const maxCurrentBytes = 4096

/** Plays jobs side by side and hands over what came of each, in any order. Stops early when it is told so. */
export async function runOnThreads(
  jobs: readonly Job[],
  { base, onTally }: { base: Base; onTally: (job: Job, tally: Tally) => 'go-on' | 'stop' },
): Promise<void> {
  const rest = [...jobs]
  const count = Math.min(maxThreads, rest.length)
  await Promise.all(
    Array.from({ length: count }, async () => {
      const thread = new Thread(base)
      try {
        for (let job = rest.shift(); job; job = rest.shift()) {
          if (onTally(job, await thread.run(job)) === 'stop') rest.length = 0
        }
      } finally {
        await thread.close()
      }
    }),
  )
}

class Thread {
  readonly #current = new Uint8Array(new SharedArrayBuffer(maxCurrentBytes))
  readonly #worker: Worker
  #job = Promise.withResolvers<Tally>()

  constructor(base: Base) {
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: { base, current: this.#current },
      // A case is forgotten as soon as it is played.
      resourceLimits: { maxYoungGenerationSizeMb: 64 },
    })
    this.#worker.on('message', (tally: Tally) => this.#job.resolve(tally))
    this.#worker.on('error', (cause) => this.#job.reject(new Error(`A thread failed over ${this.#words}`, { cause })))
    this.#worker.on('exit', () => this.#job.reject(new Error(`A thread ended over ${this.#words}`)))
  }

  async run(job: Job): Promise<Tally> {
    this.#job = Promise.withResolvers()
    let before = ''
    const watch = setInterval(() => {
      if (this.#words === before) this.#job.reject(new Error(`It hangs over ${before}`))
      before = this.#words
    }, silenceMs)
    this.#worker.postMessage(job)
    try {
      return await this.#job.promise
    } finally {
      clearInterval(watch)
    }
  }

  async close(): Promise<void> {
    // That it ends now is no news for anybody.
    this.#job.promise.catch(() => undefined)
    await this.#worker.terminate()
  }

  get #words(): string {
    return new TextDecoder().decode(this.#current.slice()).replaceAll('\0', '')
  }
}
