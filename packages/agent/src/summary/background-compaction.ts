import { prepareCompaction, type CompactionInput, type PreparedCompaction } from './compaction.ts'

/** How a summary in the background ended. `useless`: it would free too little. `stopped`: with its run, or by `stop`. */
export type BackgroundOutcome =
  | { type: 'prepared'; prepared: PreparedCompaction }
  | { type: 'useless' | 'failed' | 'stopped' }

interface Work {
  stop: AbortController
  /** Never rejects. */
  done: Promise<void>
  outcome?: BackgroundOutcome
}

/**
 * The summary of one session that is made while its run continues. It appends nothing to the conversation: the run takes it at a turn
 * boundary. If the process dies it is lost, and the next run makes it again.
 */
export class BackgroundCompaction {
  #work: Work | undefined

  /** @internal It is being made, or waits to be taken. */
  get isBegun(): boolean {
    if (this.#work?.outcome?.type === 'stopped') this.#work = undefined
    return this.#work !== undefined
  }

  /** @internal It can be taken without waiting. */
  get isReady(): boolean {
    return this.isBegun && this.#work?.outcome !== undefined
  }

  /** @internal Begins a summary of the path as it is now. One at a time. */
  begin(input: CompactionInput): void {
    if (this.isBegun) return
    const stop = new AbortController()
    const signal = AbortSignal.any([input.signal, stop.signal])
    const work: Work = { stop, done: Promise.resolve() }
    work.done = made({ ...input, signal }).then((outcome) => {
      work.outcome = outcome
    })
    this.#work = work
  }

  /** @internal Waits for the summary if it is still being made, and returns it once. The signal of the run that waits stops it. */
  async take(signal: AbortSignal): Promise<BackgroundOutcome | undefined> {
    const work = this.#work
    // An earlier run may have begun it, with a signal of its own.
    const stop = (): void => work?.stop.abort()
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    await work?.done
    signal.removeEventListener('abort', stop)
    if (this.#work === work) this.#work = undefined
    return work?.outcome
  }

  /** Discards it. Resolves when its model call has ended and its usage is in the log. */
  async stop(): Promise<void> {
    const work = this.#work
    this.#work = undefined
    work?.stop.abort()
    await work?.done
  }
}

async function made(input: CompactionInput): Promise<BackgroundOutcome> {
  try {
    const prepared = await prepareCompaction(input)
    return prepared.type === 'prepared' && prepared.isWorthwhile ? { type: 'prepared', prepared } : { type: 'useless' }
  } catch {
    // The run goes on without it. If the log cannot be written, the run learns it from its own next line.
    return { type: input.signal.aborted ? 'stopped' : 'failed' }
  }
}
