import type { PromptResult, SessionHandle } from '@tapetree/client'
import { newId } from '@tapetree/session'
import type { TranscriptError } from '@tapetree/session/view'
import { settledWithin } from '@tapetree/session/util/deadline'
import { Failure } from '../command-line/failure.ts'
import type { Refusal } from './refuse-requests.ts'
import type { RunAccount } from './run-account.ts'
import { RunWatch, type PromptEnd, type WatchedEnd } from './run-watch.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { keyHelp } from '../command-line/failure-of.ts'
import { harmless, harmlessLine } from '../text/harmless.ts'

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
  findOutcome: (sought: { sessionId: string; command: string; after: number }) => Promise<PromptResult | undefined>
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
  readonly #taken = new Set<PromptResult>()
  readonly #resumed = new Set<string>()
  readonly #underWay = new Set<PromptResult>()
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

  async #command(way: Way, text: string, imageIds: string[]): Promise<PromptResult> {
    const { handle } = this
    const after = handle.transcript.seq
    const id = newId()
    const options = { id, ...(imageIds.length > 0 && { imageIds }) }
    const outcome = await handle[way === 'follow_up' ? 'followUp' : way](text, options)
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
  #cancel(outcome: PromptResult): void {
    const runId = this.#watch.runBegunBy(outcome)
    const { handle } = this
    if (runId !== undefined) handle.abort(runId).catch(() => undefined)
    else if (outcome.outcome === 'queued' || outcome.outcome === 'steered') {
      handle.changeQueue('queue.remove', { id: outcome.messageId }).catch(() => undefined)
    }
  }
}

/** Everything that determines the result of a run for a script. */
interface RunEnding {
  sessionId: string
  end: PromptEnd
  /** The state of the session at the end. */
  error: TranscriptError | null
  /** Permissions refused because no user was present. */
  refusals: readonly Refusal[]
  /** Why this process stopped it. */
  stopped: StopReason | undefined
}

/** Why the run was stopped by its caller. `unread`: its output can no longer be written. */
type StopReason = 'interrupted' | 'timeout' | 'unread'

/** Undefined on success. */
function failureOfRun({ sessionId, end, error, refusals, stopped }: RunEnding): Failure | undefined {
  const goOn = [goOnWith(sessionId)]
  if (stopped) return stoppedFailure(sessionId, stopped)
  if (end.type === 'held') {
    const next = [`tapetree attach ${sessionId}`]
    return new Failure(exitCodes.runFailed, 'The prompt was not sent.', {
      type: 'held',
      why: harmlessLine(end.reason),
      next,
    })
  }
  if (end.type === 'handled') return undefined
  const { outcome, reason } = end.end
  if (reason?.startsWith('limit:')) {
    return new Failure(exitCodes.limitReached, said(error, 'The run reached a limit.'), {
      type: reason,
      next: goOn,
    })
  }
  if (refusals.length > 0) return permissionNeeded(sessionId, refusals)
  switch (outcome) {
    case 'completed':
      return undefined
    case 'failed':
      return failed(error, reason, goOn)
    case 'aborted':
      return new Failure(exitCodes.runFailed, 'The run was stopped before it was done.', {
        type: 'run-aborted',
        next: goOn,
      })
    case 'abandoned':
      return new Failure(exitCodes.runFailed, 'The run was abandoned.', { type: 'run-abandoned', next: goOn })
    default:
      return outcome satisfies never
  }
}

function stoppedFailure(sessionId: string, reason: StopReason): Failure {
  const details = { why: `Everything so far is saved in session ${sessionId}.`, next: [goOnWith(sessionId)] }
  switch (reason) {
    case 'interrupted':
      return new Failure(exitCodes.interrupted, 'Interrupted.', { type: 'interrupted', ...details })
    case 'unread':
      return new Failure(exitCodes.interrupted, 'The reader of the output has gone, so the run was stopped.', {
        type: 'output-closed',
        ...details,
      })
    case 'timeout':
      return new Failure(exitCodes.limitReached, 'The run exceeded --timeout and was stopped.', {
        type: 'limit:timeout',
        ...details,
      })
    default:
      return reason satisfies never
  }
}

function goOnWith(sessionId: string): string {
  return `tapetree run --session ${sessionId} "Go on"`
}

function failed(error: TranscriptError | null, reason: string | undefined, goOn: string[]): Failure {
  const message = said(error, 'The run failed.')
  if (reason === 'auth') return new Failure(exitCodes.noModel, message, { type: 'auth', next: keyHelp })
  return new Failure(exitCodes.runFailed, message, { type: reason ?? 'run-failed', next: goOn })
}

function said(error: TranscriptError | null, otherwise: string): string {
  return error && error.message !== '' ? harmless(error.message) : otherwise
}

/** Names the requests, and the rules that would have allowed them. */
function permissionNeeded(sessionId: string, refusals: readonly Refusal[]): Failure {
  const asked = [...new Set(refusals.map(({ title }) => harmlessLine(title)))]
  const rules = [...new Set(refusals.flatMap((refusal) => refusal.rules))]
  const allow = rules.map((rule) => `--allow ${shellWord(harmlessLine(rule))}`)
  const isCovered = refusals.every((refusal) => refusal.rules.length > 0)
  const why = [
    ...asked.slice(1),
    ...(isCovered ? [] : ['A rule cannot allow all of it: use tapetree attach to answer.']),
  ]
  return new Failure(
    exitCodes.permissionNeeded,
    `A permission is required, and no user is present to grant it: ${asked[0]}`,
    {
      type: 'permission-needed',
      ...(why.length > 0 && { why: why.join('\n') }),
      next:
        allow.length > 0
          ? [`tapetree run --session ${sessionId} ${allow.join(' ')} "Go on"`]
          : [`tapetree --session ${sessionId}`],
    },
  )
}

/** Quotes a text as one shell word, for commands that users copy. */
function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
