import type { PromptResult as PromptOutcome, SessionHandle } from '@tapetree/client'
import { newId } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import type { Failure } from '../command-line/failure.ts'
import type { Refusal } from './refuse-requests.ts'
import { failureOfRun, stoppedFailure, type StopReason } from './run-failure.ts'
import type { RunAccount } from './run-account.ts'
import { RunWatch, type PromptEnd, type WatchedEnd } from './run-watch.ts'

type Way = 'prompt' | 'steer' | 'follow_up'

/** The outcome. */
export interface Ended {
  end: PromptEnd
  account: RunAccount
  /** Absent on success. */
  failure: Failure | undefined
}

interface PrintSessionOptions {
  handle: SessionHandle
  isOwner: () => boolean
  /** Permissions refused because no user was present. */
  refusalsTo: (runId: string) => readonly Refusal[]
  /** The outcome of a command whose process exited before it could answer. */
  findOutcome: (sought: { sessionId: string; command: string; after: number }) => Promise<PromptOutcome | undefined>
  /** A prompt was accepted, so one more run may be ours. */
  onTaken: () => void
}

/** How long a finished run may take to report its end. */
const stopMs = 5000

/** Prompts to one session, until their runs end or are stopped. */
export class PrintSession {
  readonly handle: SessionHandle
  readonly #options: PrintSessionOptions
  readonly #watch: RunWatch
  readonly #taken = new Set<PromptOutcome>()
  readonly #resumed = new Set<string>()
  readonly #underWay = new Set<PromptOutcome>()
  readonly #gaveUp = Promise.withResolvers<never>()
  readonly #stopping = new AbortController()
  #stopped: StopReason | undefined
  #stopTimer: NodeJS.Timeout | undefined

  constructor(options: PrintSessionOptions) {
    this.handle = options.handle
    this.#options = options
    this.#watch = new RunWatch(options.handle, options)
    // Avoids an unhandled rejection if nothing awaits it.
    this.#gaveUp.promise.catch(() => undefined)
  }

  /** Aborted when the run is stopped. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** The result if it was stopped. */
  get stopFailure(): Failure | undefined {
    return this.#stopped && stoppedFailure(this.handle.sessionId, this.#stopped)
  }

  /** A run that this process started or resumed. */
  isOwn(runId: string): boolean {
    return this.#resumed.has(runId) || [...this.#taken].some((outcome) => this.#watch.runBegunBy(outcome) === runId)
  }

  /** Resolves when the prompt is accepted, with a promise of its outcome. */
  async send(way: Way, text: string, imageIds: string[] = []): Promise<{ ended: Promise<Ended> }> {
    this.#throwIfStopped()
    const outcome = await this.#command(way, text, imageIds)
    this.#taken.add(outcome)
    this.#underWay.add(outcome)
    if (this.signal.aborted) this.#cancel(outcome)
    const ended = this.#ended(this.#watch.end(outcome)).finally(() => this.#underWay.delete(outcome))
    // It is awaited later, and may fail before.
    ended.catch(() => undefined)
    this.#options.onTaken()
    return { ended }
  }

  /** Resumes an interrupted run. If it is stopped meanwhile, it stays open and can be resumed again. */
  async resume(runId: string): Promise<{ ended: Promise<Ended> }> {
    this.#throwIfStopped()
    this.#resumed.add(runId)
    await this.#unlessStopped(this.#watch.takeUp())
    const ended = this.#unlessStopped(this.#ended(this.#watch.endOf(runId)))
    ended.catch(() => undefined)
    return { ended }
  }

  /** Stops active runs. The log keeps everything so far. */
  stop(reason: StopReason): void {
    if (this.#stopped) return
    this.#stopped = reason
    this.#stopping.abort()
    for (const outcome of this.#underWay) this.#cancel(outcome)
    this.#stopTimer = setTimeout(() => this.#gaveUp.reject(this.stopFailure), stopMs)
  }

  close(): void {
    clearTimeout(this.#stopTimer)
    this.#watch.close()
  }

  async #unlessStopped<T>(work: Promise<T>): Promise<T> {
    if ((await settledWithin(work, { signal: this.signal })) === 'aborted') this.#throwIfStopped()
    return work
  }

  #throwIfStopped(): void {
    if (this.stopFailure) throw this.stopFailure
  }

  async #command(way: Way, text: string, imageIds: string[]): Promise<PromptOutcome> {
    const { handle } = this
    const after = handle.transcript.seq
    const id = newId()
    const args = { text, ...(imageIds.length > 0 && { image_ids: imageIds }) }
    const outcome = (await handle.run(way, args, { id })) as PromptOutcome | undefined
    const found = outcome ?? (await this.#options.findOutcome({ sessionId: handle.sessionId, command: id, after }))
    if (!found) throw new Error('The session accepted the prompt, but its outcome is unknown.')
    return found
  }

  async #ended(watched: Promise<WatchedEnd>): Promise<Ended> {
    const { account, ...end } = await Promise.race([watched, this.#gaveUp.promise])
    const refusals = end.type === 'run' ? this.#options.refusalsTo(end.end.runId) : []
    const { sessionId } = this.handle
    const failure = failureOfRun({ sessionId, end, error: account.error, refusals, stopped: this.#stopped })
    return { end, account, failure }
  }

  /** Only our own runs: a session of another process may be working for another user. */
  #cancel(outcome: PromptOutcome): void {
    const runId = this.#watch.runBegunBy(outcome)
    const { handle } = this
    if (runId !== undefined) handle.cancel(runId).catch(() => undefined)
    else if (outcome.outcome === 'queued' || outcome.outcome === 'steered') {
      handle.changeQueue('queue.remove', { id: outcome.message_id }).catch(() => undefined)
    }
  }
}
