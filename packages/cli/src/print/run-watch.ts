import type { PromptResult, SessionChange, SessionHandle } from '@tapetree/client'
import type { RunEndRecord } from '@tapetree/session/format'
import type { Transcript } from '@tapetree/session/view'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { accountOf, type RunAccount, type RunBeginning } from './run-account.ts'
import { harmlessLine } from '../text/harmless.ts'

type RunEnd = RunEndRecord['runEnd']

/** The outcome of a prompt. */
export type PromptEnd =
  | { type: 'run'; end: RunEnd }
  /** An extension command, which needs no model. */
  | { type: 'handled'; say: string }
  /** The message stays queued until a user releases it. */
  | { type: 'held'; reason: string }

/** With its answer and usage. */
export type WatchedEnd = PromptEnd & { account: RunAccount }

/** Records which runs of a session have ended, so that none is missed however fast they follow each other. */
export class RunWatch {
  readonly #handle: SessionHandle
  readonly #isOwner: () => boolean
  readonly #began = new Map<string, RunBeginning>()
  readonly #ended = new Map<string, Extract<WatchedEnd, { type: 'run' }>>()
  /** The run that a queued message started. */
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

  /** Resolves when the run of the prompt has ended. Rejects if the session is lost. */
  async end(outcome: PromptResult): Promise<WatchedEnd> {
    const sent = { seq: this.#before.seq, usage: this.#before.usage, at: Date.now() }
    const untold = (): RunAccount => accountOf(this.#handle.transcript, sent, Date.now())
    switch (outcome.outcome) {
      case 'started':
        return this.endOf(outcome.runId)
      case 'handled':
        return { type: 'handled', say: outcome.say ?? '', account: untold() }
      case 'steered':
      case 'queued': {
        const { runId, messageId } = outcome
        const isInRun = outcome.outcome === 'steered' && runId !== null
        const next = isInRun ? { runId } : await this.#endOfWaiting(messageId)
        return 'runId' in next ? this.endOf(next.runId) : { ...next, account: { ...untold(), text: '' } }
      }
      default:
        return outcome satisfies never
    }
  }

  /** Resumes a run whose process exited, if this process is the next owner of the session. */
  async endOf(runId: string): Promise<WatchedEnd> {
    for (;;) {
      const found = await this.#until(() => this.#ended.get(runId) ?? this.#standstill(runId))
      if (found === 'passed') throw lost(this.#handle)
      if (found !== 'left-behind') return found
      await this.takeUp()
    }
  }

  /** Resumes the interrupted run. */
  takeUp(): Promise<void> {
    this.#takingUp ??= takeUp(this.#handle).finally(() => (this.#takingUp = undefined))
    return this.#takingUp
  }

  /** The run that the prompt started; undefined while the prompt is queued, and if another run received it. */
  runBegunBy(outcome: PromptResult): string | undefined {
    this.#take(this.#handle.transcript)
    if (outcome.outcome === 'handled') return undefined
    return outcome.outcome === 'started' ? outcome.runId : this.#runOf.get(outcome.messageId)
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
          : { type: 'held', reason: 'The message was removed from the queue.' }
      })
      if (found !== 'left-behind') return found
      await this.takeUp()
    }
  }

  /** `passed`: it was open, and at the next update it and another run had already ended. */
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

/** Between the line of the message and that of its run, it is neither queued nor running. */
function isDelivered({ path }: Transcript, messageId: string): boolean {
  return path.items.slice(-10).some((item) => item.type === 'user' && item.submissionId === messageId)
}

function lost({ sessionId }: SessionHandle): Failure {
  return new Failure(exitCodes.ownedElsewhere, 'The process that owns the session is no longer reachable.', {
    type: 'connection-lost',
    why: 'The log of the session shows whether the prompt was answered.',
    next: [`tapetree sessions show ${sessionId}`, `tapetree run --session ${sessionId} "Go on"`],
  })
}

/** An interrupted run that no process is working on. */
export function leftBehindIn(handle: SessionHandle): string | undefined {
  const { waitingFor } = handle.state('run') ?? {}
  return waitingFor?.type === 'resume' ? waitingFor.runId : undefined
}

/** Resumes it. Rejects if a user has to decide. */
async function takeUp(handle: SessionHandle): Promise<void> {
  try {
    await handle.run('resume', { by_person: false })
  } catch (error) {
    // Another process may have resumed it first.
    if (leftBehindIn(handle) !== undefined) throw needsPerson(handle.sessionId, error)
  }
  await untilTaken(handle)
}

/** The state arrives separately from the log, and may come later. */
function untilTaken(handle: SessionHandle): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = (): void => {
    if (leftBehindIn(handle) === undefined || handle.status.type === 'closed') resolve()
  }
  const stop = handle.subscribe(look)
  look()
  return promise.finally(stop)
}

function needsPerson(sessionId: string, cause: unknown): Failure {
  return new Failure(exitCodes.runFailed, 'A run was interrupted in this session, and cannot be resumed here.', {
    type: 'run-interrupted',
    why: cause instanceof Error ? harmlessLine(cause.message) : String(cause),
    next: [`tapetree --session ${sessionId}`],
    cause,
  })
}
