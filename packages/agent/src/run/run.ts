import { newId, SessionError, text, type Cause, type Content } from '@tapetree/session'
import type { RecordDraft, RunStartRecord } from '@tapetree/session/format'
import { ModelError } from '../models/model.ts'
import { announceNext, deliverNext } from './delivery.ts'
import { OpenForeignRun } from './foreign-run.ts'
import { RunStopped } from './limits.ts'
import { OpenRun, type CurrentRun } from './open-run.ts'
import { positionOf, type Position } from './position.ts'
import { preparationOf, tellTurn, type NamedDraft } from './prepare-run.ts'
import { recoverFrom, type RecoveryHistory } from './recovery.ts'
import { compactRun, deliverSteers } from './request.ts'
import { settleEvidence, type ResumePlan } from './resume.ts'
import type { RunDeps } from './run-deps.ts'
import type { RunEnd } from './run-settings.ts'
import { runToolCalls } from './tool-calls.ts'
import { turn } from './turn.ts'
import { endInterruptedCommands } from './user-command.ts'

/** What a run begins with. */
export type RunStart =
  | { type: 'prompt'; content: Content[]; cause?: Cause }
  /** The next queued message. Delivering it removes it from the inbox. */
  | { type: 'waiting' }
  /** The current leaf, to retry a failed run or to continue after a limit was raised. */
  | { type: 'leaf'; cause?: Cause }
  /** A run whose process died. */
  | { type: 'resume'; plan: ResumePlan; cause?: Cause }

/** A queued message that follows a run. It is on the path already. */
interface Delivered {
  type: 'delivered'
  submissionId: string
  open: OpenRun
}

/**
 * Runs the agent until no message may be delivered, and returns how the last run ended. Rejects if the log cannot be written, and with
 * `message-not-found` if the queued message to begin with was held or removed meanwhile.
 */
export function run(start: RunStart, deps: RunDeps, signal: AbortSignal): Promise<RunEnd>
/** @internal Also tells which run is open. */
export function run(start: RunStart, deps: RunDeps, signal: AbortSignal, current: CurrentRun): Promise<RunEnd>
export async function run(
  start: RunStart,
  deps: RunDeps,
  signal: AbortSignal,
  current: CurrentRun = {},
): Promise<RunEnd> {
  let next: RunStart | Delivered = start
  // An earlier run may have begun a summary, with a signal of its own.
  signal.addEventListener('abort', () => void deps.background?.stop(), { once: true })
  await deps.ready?.(signal)
  for (;;) {
    const startedAt = deps.clock.now()
    if (next.type !== 'delivered') await current.appended?.()
    const open = next.type === 'delivered' ? next.open : openRun(next, deps, signal)
    current.open = open
    // Before the first line: what `begin` appends counts towards `logBytesPerTurn`.
    open.countLines()
    let end: RunEnd
    try {
      await begin(next, open)
      current.begun?.(open.runId)
      deps.files?.runStarted({ runId: open.runId, entryId: open.head })
      end = await work(open, next.type === 'resume' ? next.plan : undefined)
      await endCommands(open)
      await deps.files?.runEnded({ runId: open.runId })
      await finish(end, open, startedAt)
    } finally {
      await open.close()
    }
    if (end.outcome !== 'completed') return end
    const delivered = await deliverQueued(deps, signal, current)
    if (!delivered) return end
    next = delivered
  }
}

function openRun(start: RunStart, deps: RunDeps, signal: AbortSignal): OpenRun {
  if (start.type !== 'resume') return new OpenRun(deps, { runId: newId(), signal })
  const { runId, spent, matters } = start.plan
  const callsToRun = matters.filter((matter) => matter.type === 'call' && matter.action === 'run').length
  return new OpenRun(deps, { runId, signal, spent, callsToRun })
}

/** Appends the first message, then `run_start`. If the process dies in between, `planResume` finds a message without an answer. */
async function begin(start: RunStart | Delivered, open: OpenRun): Promise<void> {
  const { runId } = open
  switch (start.type) {
    case 'prompt': {
      const { cause } = start
      const prompt = textOf(start.content)
      const prepared = await preparationOf(open, prompt)
      const content = prepared.prompt ? withText(prepared.prompt.text, start.content) : start.content
      const said: NamedDraft = { id: newId(), type: 'message', message: { role: 'user', content, runId } }
      const changed = prepared.prompt && changedPrompt(prompt, { messageId: said.id, by: prepared.prompt.changedBy })
      return open.appendAll([
        ...[...prepared.drafts, ...(changed ? [changed] : [])].map((draft) => ({ draft })),
        { draft: said, cause },
        { draft: runStartOf(open, said.id) },
      ])
    }
    case 'waiting': {
      const submissionId = await deliverFirst(open)
      return open.append(runStartOf(open, open.head, { submissionId }))
    }
    case 'delivered':
      return open.append(runStartOf(open, open.head, { submissionId: start.submissionId }))
    case 'leaf': {
      const { drafts } = await preparationOf(open, '')
      const draft = runStartOf(open, drafts.at(-1)?.id ?? open.head)
      return open.appendAll([...drafts.map((each) => ({ draft: each })), { draft, cause: start.cause }])
    }
    case 'resume': {
      const { fruitless, spent } = start.plan
      const draft = runStartOf(open, open.head, { resumes: runId, fruitless, spent: { ...spent } })
      return open.appendAll([{ draft, cause: start.cause }])
    }
    default:
      start satisfies never
  }
}

function textOf(content: readonly Content[]): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

function withText(words: string, content: readonly Content[]): Content[] {
  return [text(words), ...content.filter((block) => block.type !== 'text')]
}

/** What the user wrote, beside the message that the model gets in its place. */
function changedPrompt(prompt: string, { messageId, by }: { messageId: string; by: readonly string[] }): NamedDraft {
  const data = { prompt, message_id: messageId, changed_by: [...by] }
  return { id: newId(), type: 'custom', custom: { customType: 'changed_prompt', data } }
}

async function deliverFirst(open: OpenRun): Promise<string> {
  const announced = await announceNext(open.deps, open.signal)
  const submissionId = announced && (await deliverNext(open, announced))
  if (submissionId !== undefined) return submissionId
  throw new SessionError('message-not-found', `No queued message may be delivered in session ${open.deps.session.id}.`)
}

type StartDetails = Partial<Pick<RunStartRecord['runStart'], 'submissionId' | 'resumes' | 'fruitless' | 'spent'>>

function runStartOf({ deps, runId }: OpenRun, leafId: string | null, details: StartDetails = {}): RecordDraft {
  const owner = deps.owner === undefined ? {} : { owner: deps.owner }
  return { type: 'run_start', runStart: { runId, leafId, ...owner, ...details } }
}

/** Carries out the plan of a resumed run, then turns and tool calls. After a recoverable error it continues where the log stands. */
async function work(open: OpenRun, plan: ResumePlan | undefined): Promise<RunEnd> {
  const { runId, signal, deps } = open
  let unsettled = plan
  const settle = async (): Promise<void> => {
    if (unsettled) await settleEvidence(unsettled, open)
    unsettled = undefined
    if (!plan || asksModel(plan)) await endCommands(open)
  }
  if (plan?.wasStopped) {
    await settle()
    return { runId, outcome: 'aborted' }
  }
  const hasFallback = Boolean(deps.fallbackModel)
  const history: RecoveryHistory = { retries: 0, wasCompacted: false, hasFallback, random: 0 }
  let headBefore = open.head
  for (;;) {
    const { foreign } = deps
    const foreignRun = foreign && new OpenForeignRun(open, foreign)
    try {
      await settle()
      await (foreignRun ? foreign.agent.work(foreignRun) : turnsUntilSettled(open))
      return { runId, outcome: 'completed' }
    } catch (error) {
      if (signal.aborted) return { runId, outcome: 'aborted' }
      if (error instanceof RunStopped) return failed(runId, error.reason, error.message)
      if (!(error instanceof ModelError)) throw error
      // Calls alone are no progress of a foreign agent: it may die each time it starts one.
      const hasProgressed = foreignRun ? foreignRun.hasEndedTurn : open.head !== headBefore
      if (hasProgressed) Object.assign(history, { retries: 0, wasCompacted: false })
      const givenUp = await recover(error, open, history)
      if (givenUp !== undefined)
        return signal.aborted ? { runId, outcome: 'aborted' } : failed(runId, error.kind, givenUp)
      headBefore = open.head
    }
  }
}

/** Whether a resumed run goes on. Otherwise nothing may come between its last answer and its end. */
function asksModel({ matters, wasStopped }: ResumePlan): boolean {
  return !wasStopped && matters.some(({ type }) => type === 'unanswered' || type === 'call')
}

function endCommands(open: OpenRun): Promise<void> {
  return endInterruptedCommands(open.deps.session, (draft, cause) => open.append(draft, undefined, cause))
}

function failed(runId: string, reason: string, message: string): RunEnd {
  return { runId, outcome: 'failed', reason, message }
}

/** Turns and their tool calls, until an answer has no calls and no steer is waiting. Begins at any position. */
async function turnsUntilSettled(open: OpenRun): Promise<void> {
  const { deps } = open
  let position: Position = await positionOf(deps.session, open.runId)
  let hasTurned = false
  for (;;) {
    if (position.openCalls.length > 0) await runToolCalls(position.openCalls, open)
    // What the calls changed is recorded before the next entry.
    await deps.files?.caughtUp()
    if (hasTurned) await tellTurn(open, 'turnEnd')
    const wasSteered = await deliverSteers(open)
    const wasTold = await tellDiagnostics(open, position)
    if (position.isSettled && !wasSteered && !wasTold) return
    open.turn++
    await tellTurn(open, 'turnStart')
    position = await turn(open)
    hasTurned = true
  }
}

/** New errors in the files that the model has changed. A run that was about to end continues, so that the model can correct them. */
async function tellDiagnostics(open: OpenRun, { isSettled }: Position): Promise<boolean> {
  const { runId, signal, deps } = open
  const told = await deps.diagnostics?.report({ runId, isSettled }, signal)
  if (told === undefined || signal.aborted) return false
  await open.append({ type: 'message', message: { role: 'custom', content: [text(told)], runId } })
  return true
}

/** Waits, compacts or changes the model, so that the run can continue. Returns why it cannot, or undefined. */
async function recover(error: ModelError, open: OpenRun, history: RecoveryHistory): Promise<string | undefined> {
  const { runId, signal } = open
  const { settings, clock, observe } = open.deps
  const step = recoverFrom(error, { ...history, random: Math.random() }, settings.retry)
  switch (step.type) {
    case 'give-up':
      return step.message
    case 'compact':
      history.wasCompacted = true
      return compactAfterOverflow(error, open)
    case 'fallback':
      history.hasFallback = false
      history.retries = 0
      return (await open.fallBack()) ? undefined : error.message
    case 'retry': {
      if (error.kind === 'empty-answer') history.hadEmptyAnswer = true
      const attempt = ++history.retries
      const { kind, message } = error
      observe({ type: 'auto_retry_start', runId, attempt, delayMs: step.delayMs, error: { kind, message } })
      const isAborted = await clock.wait(step.delayMs, signal).then(
        () => false,
        () => true,
      )
      observe({ type: 'auto_retry_end', runId, attempt, isAborted })
      return isAborted ? error.message : undefined
    }
    default:
      step satisfies never
      return error.message
  }
}

async function compactAfterOverflow(error: ModelError, open: OpenRun): Promise<string | undefined> {
  try {
    if (await compactRun(open, 'overflow')) return undefined
    return `${error.message} Compacting the context freed nothing.`
  } catch (failure) {
    if (open.signal.aborted) return error.message
    if (failure instanceof ModelError) return `${error.message} Compacting the context failed: ${failure.message}`
    throw failure
  }
}

/** Appends `run_end`, preceded by an `error` if the run failed. */
async function finish(end: RunEnd, { deps }: OpenRun, startedAt: number): Promise<void> {
  const { session, clock } = deps
  const { runId, outcome, reason, message } = end
  if (outcome === 'failed') {
    const error = { message: message ?? '', ...(reason !== undefined && { kind: reason }), runId }
    await session.append({ type: 'error', error })
  }
  const durationMs = clock.now() - startedAt
  const runEnd = { runId, outcome, durationMs, ...(reason !== undefined && { reason }) }
  await session.append({ type: 'run_end', runEnd })
  // They are rebuilt from the log if this process dies, and closing the session waits for them.
  void session.saveDerived()
}

/** Opens a run for the next queued message and delivers it. Undefined if no message may be delivered. */
async function deliverQueued(deps: RunDeps, signal: AbortSignal, current: CurrentRun): Promise<Delivered | undefined> {
  for (;;) {
    const announced = await announceNext(deps, signal)
    if (!announced) return undefined
    await current.appended?.()
    // Opened after the delay: the model and the tools may have changed meanwhile.
    const open = new OpenRun(deps, { runId: newId(), signal })
    current.open = open
    const submissionId = await deliverNext(open, announced)
    if (submissionId !== undefined) return { type: 'delivered', submissionId, open }
    if (signal.aborted) return undefined
  }
}
