import type { PromptResult as PromptOutcome, SessionChange, SessionHandle } from '@tapetree/client'
import type { RunEndRecord, Transcript } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { leftBehindIn, takeUp } from './left-behind.ts'
import { accountOf, type RunAccount, type RunBeginning } from './run-account.ts'

type RunEnd = RunEndRecord['runEnd']

/** How it came out with a prompt. */
export type PromptEnd =
  | { type: 'run'; end: RunEnd }
  /** A command of an extension, which needs no model. */
  | { type: 'handled'; say: string }
  /** It waits, and nothing will send it by itself: a person has to. */
  | { type: 'held'; reason: string }

/** With what it said and used. */
export type WatchedEnd = PromptEnd & { account: RunAccount }

/** Remembers of a session which runs have ended, so that none is missed however fast they follow each other. */
export class RunWatch {
  readonly #handle: SessionHandle
  readonly #isOwner: () => boolean
  readonly #began = new Map<string, RunBeginning>()
  readonly #ended = new Map<string, Extract<WatchedEnd, { type: 'run' }>>()
  /** The run that a waiting message began. */
  readonly #runOf = new Map<string, string>()
  readonly #seenWaiting = new Set<string>()
  readonly #stop: () => void
  #before: Transcript
  #takingUp: Promise<void> | undefined

  constructor(handle: SessionHandle, { isOwner }: { isOwner: () => boolean }) {
    this.#handle = handle
    this.#isOwner = isOwner
    this.#before = handle.transcript
    this.#take(handle.transcript)
    this.#stop = handle.subscribe((change) => {
      if (change.type === 'transcript') this.#take(handle.transcript)
    })
  }

  /** Resolves when what the prompt began is over. Rejects where the session is lost. */
  async end(outcome: PromptOutcome): Promise<WatchedEnd> {
    const sent = { seq: this.#before.seq, usage: this.#before.usage, at: Date.now() }
    const untold = (): RunAccount => accountOf(this.#handle.transcript, sent, Date.now())
    switch (outcome.outcome) {
      case 'started':
        return this.endOf(outcome.run_id)
      case 'handled':
        return { type: 'handled', say: outcome.say ?? '', account: untold() }
      case 'steered':
      case 'queued': {
        const { run_id: runId, message_id: messageId } = outcome
        const isInRun = outcome.outcome === 'steered' && runId !== null
        const next = isInRun ? { runId } : await this.#endOfWaiting(messageId)
        return 'runId' in next ? this.endOf(next.runId) : { ...next, account: { ...untold(), text: '' } }
      }
      default:
        return outcome satisfies never
    }
  }

  /** A run that its process leaves in the middle is taken up by whoever owns the session next: here, that is us. */
  async endOf(runId: string): Promise<WatchedEnd> {
    for (;;) {
      const found = await this.#until(() => this.#ended.get(runId) ?? this.#standstill(runId))
      if (found === 'passed') throw lost(this.#handle)
      if (found !== 'left-behind') return found
      await this.takeUp()
    }
  }

  /** Goes on with the run that was left behind. */
  takeUp(): Promise<void> {
    this.#takingUp ??= takeUp(this.#handle).finally(() => (this.#takingUp = undefined))
    return this.#takingUp
  }

  /** The run that the prompt began; undefined as long as it waits for its turn, and where it went into the run of another. */
  runBegunBy(outcome: PromptOutcome): string | undefined {
    this.#take(this.#handle.transcript)
    if (outcome.outcome === 'handled') return undefined
    return outcome.outcome === 'started' ? outcome.run_id : this.#runOf.get(outcome.message_id)
  }

  close(): void {
    this.#stop()
  }

  async #endOfWaiting(messageId: string): Promise<{ runId: string } | PromptEnd> {
    for (;;) {
      const found = await this.#until((transcript): { runId: string } | PromptEnd | 'left-behind' | undefined => {
        const runId = this.#runOf.get(messageId)
        if (runId !== undefined) return { runId }
        if (this.#isForUs()) return 'left-behind'
        if (!this.#seenWaiting.has(messageId)) return undefined
        const isWaiting = transcript.waiting.some(({ id }) => id === messageId)
        if (isWaiting && transcript.hold) {
          return { type: 'held', reason: transcript.hold.reason ?? 'The queue is held.' }
        }
        return isWaiting || isDelivered(transcript, messageId)
          ? undefined
          : { type: 'held', reason: 'The message was taken out of the queue.' }
      })
      if (found !== 'left-behind') return found
      await this.takeUp()
    }
  }

  /** `passed`: it was open, and by the next that was seen of the session it had ended and so had another. */
  #standstill(runId: string): 'left-behind' | 'passed' | undefined {
    if (this.#isForUs()) return 'left-behind'
    const isOpen = this.#handle.transcript.run?.runId === runId
    return this.#began.has(runId) && !isOpen ? 'passed' : undefined
  }

  #isForUs(): boolean {
    return this.#isOwner() && leftBehindIn(this.#handle) !== undefined
  }

  #take(transcript: Transcript): void {
    const { run, lastRun, waiting } = transcript
    const before = this.#before
    this.#before = transcript
    if (run?.submissionId !== undefined) this.#runOf.set(run.submissionId, run.runId)
    for (const { id } of waiting) this.#seenWaiting.add(id)
    if (run && !this.#began.has(run.runId)) {
      this.#began.set(run.runId, { seq: run.seq, usage: before.usage, at: Date.now() })
    }
    if (!lastRun || lastRun === before.lastRun || this.#ended.has(lastRun.runId)) return
    const beginning = this.#began.get(lastRun.runId) ?? { seq: before.seq, usage: before.usage, at: Date.now() }
    const account = accountOf(transcript, beginning, Date.now())
    this.#ended.set(lastRun.runId, { type: 'run', end: lastRun, account })
  }

  #until<T>(read: (transcript: Transcript) => T | undefined): Promise<T> {
    const handle = this.#handle
    this.#take(handle.transcript)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const look = (change?: SessionChange): void => {
      const found = read(handle.transcript)
      if (found !== undefined) resolve(found)
      else if (change?.type !== 'notice' && handle.status.type === 'closed') reject(lost(handle))
    }
    const stop = handle.subscribe(look)
    look()
    return promise.finally(stop)
  }
}

/** Between its line and that of the run it begins there is a moment in which it neither waits nor runs. */
function isDelivered({ path }: Transcript, messageId: string): boolean {
  return path.items.slice(-10).some((item) => item.type === 'user' && item.submissionId === messageId)
}

function lost({ sessionId }: SessionHandle): Failure {
  return new Failure(exitCodes.ownedElsewhere, 'The process that owns the session is not reachable any more.', {
    type: 'connection-lost',
    why: 'Whether the prompt was answered is in the log of the session.',
    next: [`tapetree sessions show ${sessionId}`, `tapetree run --session ${sessionId} "Go on"`],
  })
}
