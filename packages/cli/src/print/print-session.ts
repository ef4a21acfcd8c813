import type { PromptResult as PromptOutcome, SessionHandle } from '@tapetree/client'
import { newId } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import type { Failure } from '../command-line/failure.ts'
import type { Refusal } from './refuse-requests.ts'
import { failureOfRun, stoppedFailure, type StopReason } from './run-failure.ts'
import type { RunAccount } from './run-account.ts'
import { RunWatch, type PromptEnd, type WatchedEnd } from './run-watch.ts'

type Way = 'prompt' | 'steer' | 'follow_up'

/** How it came out. */
export interface Ended {
  end: PromptEnd
  account: RunAccount
  /** Absent: it went well. */
  failure: Failure | undefined
}

interface PrintSessionOptions {
  handle: SessionHandle
  isOwner: () => boolean
  /** What was refused to a run because nobody was there. */
  refusalsTo: (runId: string) => readonly Refusal[]
  /** Of a command that was carried out by a process that did not live to say so. */
  findOutcome: (sought: { sessionId: string; command: string; after: number }) => Promise<PromptOutcome | undefined>
  /** A prompt was taken, so that there may be one more run of ours. */
  onTaken: () => void
}

/** How long an ended run may take to say so. */
const stopMs = 5000

/** Prompts to one session, until their runs are over or are stopped. */
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
    // Nobody need be waiting when it is given up.
    this.#gaveUp.promise.catch(() => undefined)
  }

  /** Aborted when it is stopped. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** What it ends with where it was stopped. */
  get stopFailure(): Failure | undefined {
    return this.#stopped && stoppedFailure(this.handle.sessionId, this.#stopped)
  }

  /** A run that was begun from here, or taken up. */
  isOwn(runId: string): boolean {
    return this.#resumed.has(runId) || [...this.#taken].some((outcome) => this.#watch.runBegunBy(outcome) === runId)
  }

  /** Resolves when it is taken, with the promise of how it ends. */
  async send(way: Way, text: string, imageIds: string[] = []): Promise<{ ended: Promise<Ended> }> {
    this.#throwIfStopped()
    const outcome = await this.#command(way, text, imageIds)
    this.#taken.add(outcome)
    this.#underWay.add(outcome)
    if (this.signal.aborted) this.#cancel(outcome)
    const ended = this.#ended(this.#watch.end(outcome)).finally(() => this.#underWay.delete(outcome))
    // It is waited for later, and may fail before.
    ended.catch(() => undefined)
    this.#options.onTaken()
    return { ended }
  }

  /** Goes on with a run that was left behind. One that is stopped meanwhile stays open, to be resumed again. */
  async resume(runId: string): Promise<{ ended: Promise<Ended> }> {
    this.#throwIfStopped()
    this.#resumed.add(runId)
    await this.#unlessStopped(this.#watch.takeUp())
    const ended = this.#unlessStopped(this.#ended(this.#watch.endOf(runId)))
    ended.catch(() => undefined)
    return { ended }
  }

  /** Ends what runs. What was said stays in the log. */
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
    if (!found) throw new Error('The session took the prompt, and did not say what became of it.')
    return found
  }

  async #ended(watched: Promise<WatchedEnd>): Promise<Ended> {
    const { account, ...end } = await Promise.race([watched, this.#gaveUp.promise])
    const refusals = end.type === 'run' ? this.#options.refusalsTo(end.end.runId) : []
    const { sessionId } = this.handle
    const failure = failureOfRun({ sessionId, end, error: account.error, refusals, stopped: this.#stopped })
    return { end, account, failure }
  }

  /** Only what is ours: a session of another process may be at work for somebody else. */
  #cancel(outcome: PromptOutcome): void {
    const runId = this.#watch.runBegunBy(outcome)
    const { handle } = this
    if (runId !== undefined) handle.cancel(runId).catch(() => undefined)
    else if (outcome.outcome === 'queued' || outcome.outcome === 'steered') {
      handle.changeQueue('queue.remove', { id: outcome.message_id }).catch(() => undefined)
    }
  }
}
