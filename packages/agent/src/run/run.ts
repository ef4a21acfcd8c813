import { newId, SessionError, type Cause, type Content, type Session, type WaitingMessage } from '@tapetree/session'
import { openDraft, type Draft } from './draft.ts'
import { RunStopped } from './limits.ts'
import type { LoopContext, Position, RunEnd } from './loop-context.ts'
import { runLoop, type Runs } from './run-loop.ts'
import { ModelError } from '../models/model-error.ts'
import type { AgentParts } from './agent-parts.ts'
import { positionOf } from './position.ts'
import { recoverFrom, type RecoveryHistory } from './recovery.ts'
import { settleEvidence, type ResumePlan } from './resume.ts'
import { nextWaiting } from './next-waiting.ts'
import { RunContext } from './run-context.ts'
import { prepareRun } from './prepare-run.ts'
import { OwnerLeft } from './shared-session.ts'

/** What a run begins with. */
export type RunStart =
  | { type: 'prompt'; content: Content[]; cause?: Cause }
  /** The message that waits next; delivering it takes it out of the inbox. */
  | { type: 'waiting' }
  /** The leaf as it stands: a failed run once more, or one that had reached a limit. */
  | { type: 'leaf'; cause?: Cause }
  /** A run whose process died. */
  | { type: 'resume'; plan: ResumePlan; cause?: Cause }

/**
 * Runs the agent until nothing more is to be delivered, and says how the last run ended. Rejects where the log cannot be written,
 * and with `message-not-found` where the message that it was to begin with has just been held or taken back.
 */
export async function run(start: RunStart, parts: AgentParts, signal: AbortSignal): Promise<RunEnd> {
  const draft = openDraft(parts.session.localFolder)
  try {
    return await runLoop(new SessionRuns(start, parts, { signal, draft }))
  } finally {
    await draft.close()
  }
}

/** A message that waited while another run went on, and that is on the path already. */
interface Delivered {
  type: 'delivered'
  submissionId: string
  context: RunContext
}

class SessionRuns implements Runs {
  readonly #parts: AgentParts
  readonly #session: Session
  readonly #signal: AbortSignal
  readonly #draft: Draft
  #start: RunStart | Delivered

  constructor(start: RunStart, parts: AgentParts, { signal, draft }: { signal: AbortSignal; draft: Draft }) {
    this.#start = start
    this.#parts = parts
    this.#session = parts.session
    this.#signal = signal
    this.#draft = draft
  }

  async inRun(work: (position: Position, context: LoopContext) => Promise<void>): Promise<RunEnd> {
    const start = this.#start
    const startedAt = this.#parts.clock.now()
    const context = start.type === 'delivered' ? start.context : this.#contextFor(start)
    const { runId } = context
    const stopCounting = this.#session.subscribe((line) => context.countLine(line))
    try {
      await begin(start, context, this.#parts)
      let plan = start.type === 'resume' ? start.plan : undefined
      const settle = async (): Promise<void> => {
        if (plan) await settleEvidence(plan, context, this.#session)
        plan = undefined
      }
      const end = plan?.wasStopped
        ? await settle().then((): RunEnd => ({ runId, outcome: 'aborted' }))
        : await recovering(context, this.#parts, async () => {
            await settle()
            await work(await positionOf(this.#session), context)
          })
      await this.#finish(end, startedAt)
      return end
    } finally {
      stopCounting()
    }
  }

  async deliverFollowUp(): Promise<boolean> {
    const delivered = await deliverNext(() => this.#contextFor({ type: 'leaf' }), this.#parts, this.#signal)
    if (delivered) this.#start = { type: 'delivered', ...delivered }
    return delivered !== undefined
  }

  #contextFor(start: RunStart): RunContext {
    const { runId, spent, matters } = start.type === 'resume' ? start.plan : { runId: newId(), matters: [] }
    const callsToRun = matters.filter((matter) => matter.type === 'call' && matter.action === 'run').length
    const options = { runId, signal: this.#signal, draft: this.#draft, spent, callsToRun }
    const context = new RunContext(this.#parts, options)
    this.#parts.onRun?.(context)
    return context
  }

  async #finish({ runId, outcome, reason, message }: RunEnd, startedAt: number): Promise<void> {
    if (outcome === 'failed') {
      const error = { message: message ?? '', ...(reason !== undefined && { kind: reason }), runId }
      await this.#session.append({ type: 'error', error })
    }
    const durationMs = this.#parts.clock.now() - startedAt
    const runEnd = { runId, outcome, durationMs, ...(reason !== undefined && { reason }) }
    await this.#session.append({ type: 'run_end', runEnd })
    await this.#session.saveDerived()
  }
}

/** The delivering message, then `run_start`: should the process die between them, the message is still found unanswered. */
async function begin(start: RunStart | Delivered, context: RunContext, parts: AgentParts): Promise<void> {
  const { runId } = context
  const owner = parts.owner === undefined ? {} : { owner: parts.owner }
  if (start.type === 'resume') {
    const { fruitless, spent } = start.plan
    const runStart = { runId, leafId: context.head, ...owner, resumes: runId, fruitless, spent: { ...spent } }
    await parts.session.append({ type: 'run_start', runStart }, causeOf(start))
    return
  }
  if (start.type === 'prompt' || start.type === 'leaf') await prepareRun(context, parts, promptOf(start))
  if (start.type === 'prompt') await context.prompt(start.content, start.cause)
  const submissionId = start.type === 'waiting' ? await deliverWaiting(context, parts) : submissionOf(start)
  const runStart = { runId, leafId: context.head, ...owner, ...(submissionId !== undefined && { submissionId }) }
  await parts.session.append({ type: 'run_start', runStart }, start.type === 'leaf' ? causeOf(start) : {})
}

/**
 * Announces the message that may go out next, waits as long as it has to and delivers it, or what is the next by then: it may have
 * been held, moved or taken back. Undefined where none may go out.
 */
async function deliverNext(
  contextNow: () => RunContext,
  parts: AgentParts,
  signal: AbortSignal,
): Promise<{ submissionId: string; context: RunContext } | undefined> {
  const { session, clock, settings, observe } = parts
  const next = (): WaitingMessage | undefined => nextWaiting(session, settings)
  const first = next()
  if (!first) return undefined
  const announced = first.delivery === 'follow-up' ? first.id : undefined
  if (announced !== undefined) observe({ type: 'queue_message_sending', messageId: announced })
  // A steer that came too late for its run waits no longer.
  const delayMs = session.nextWaiting('steer') ? 0 : settings.followUpDelayMs
  // Whether it was stopped is asked below.
  if (delayMs > 0) await clock.wait(delayMs, signal).catch(() => undefined)
  const context = contextNow()
  await prepareRun(context, parts, next()?.message ?? '')
  // From here to its line nobody can come between.
  const message = next()
  // If only the owner of this run has left, another one delivers it.
  if (message && signal.aborted && !(signal.reason instanceof OwnerLeft)) {
    await session.changeInbox({ action: 'hold', reason: 'the user stopped the agent before it went out' })
  }
  if (!message || signal.aborted) return undefined
  const isQueued = message.delivery === 'follow-up'
  if (isQueued && message.id !== announced) observe({ type: 'queue_message_sending', messageId: message.id })
  await context.deliver(message)
  if (isQueued) observe({ type: 'queue_message_sent', messageId: message.id })
  return { submissionId: message.id, context }
}

async function deliverWaiting(context: RunContext, parts: AgentParts): Promise<string> {
  const delivered = await deliverNext(() => context, parts, context.signal)
  if (delivered) return delivered.submissionId
  throw new SessionError('message-not-found', `No message may go out in session ${parts.session.id}.`)
}

function promptOf(start: RunStart): string {
  if (start.type !== 'prompt') return ''
  return start.content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

function causeOf({ cause }: { cause?: Cause }): { cause?: Cause } {
  return cause ? { cause } : {}
}

function submissionOf(start: RunStart | Delivered): string | undefined {
  return start.type === 'delivered' ? start.submissionId : undefined
}

/** Works until it is done or cannot be: what failed in passing is begun again from where the log stands. */
async function recovering(context: RunContext, parts: AgentParts, work: () => Promise<void>): Promise<RunEnd> {
  const { runId, signal } = context
  const history: RecoveryHistory = {
    retries: 0,
    wasCompacted: false,
    hasFallback: Boolean(parts.fallbackModel),
    random: 0,
  }
  let headBefore = context.head
  for (;;) {
    try {
      await work()
      return { runId, outcome: 'completed' }
    } catch (error) {
      if (signal.aborted) return { runId, outcome: 'aborted' }
      if (error instanceof RunStopped) return failed(runId, error.reason, error.message)
      if (!(error instanceof ModelError)) throw error
      if (context.head !== headBefore) Object.assign(history, { retries: 0, wasCompacted: false })
      const givenUp = await recover(error, context, parts, history)
      if (givenUp !== undefined)
        return signal.aborted ? { runId, outcome: 'aborted' } : failed(runId, error.kind, givenUp)
      headBefore = context.head
    }
  }
}

function failed(runId: string, reason: string, message: string): RunEnd {
  return { runId, outcome: 'failed', reason, message }
}

/** Waits or compacts, so that the work may be begun again; or says why it may not. */
async function recover(
  error: ModelError,
  context: RunContext,
  { settings, clock }: AgentParts,
  history: RecoveryHistory,
): Promise<string | undefined> {
  const { runId, signal } = context
  const step = recoverFrom(error, { ...history, random: Math.random() }, settings.retry)
  switch (step.type) {
    case 'give-up':
      return step.message
    case 'compact':
      history.wasCompacted = true
      return compactAfterOverflow(error, context)
    case 'fallback':
      history.hasFallback = false
      history.retries = 0
      return (await context.fallBack()) ? undefined : error.message
    case 'retry': {
      if (error.kind === 'empty-answer') history.hadEmptyAnswer = true
      const attempt = ++history.retries
      const { kind, message } = error
      context.observe({ type: 'auto_retry_start', runId, attempt, delayMs: step.delayMs, error: { kind, message } })
      const isAborted = await clock.wait(step.delayMs, signal).then(
        () => false,
        () => true,
      )
      context.observe({ type: 'auto_retry_end', runId, attempt, isAborted })
      return isAborted ? error.message : undefined
    }
    default:
      step satisfies never
      return error.message
  }
}

async function compactAfterOverflow(error: ModelError, context: RunContext): Promise<string | undefined> {
  try {
    if (await context.compact('overflow')) return undefined
    return `${error.message} Compacting the context freed nothing.`
  } catch (failure) {
    if (context.signal.aborted) return error.message
    if (failure instanceof ModelError) return `${error.message} Compacting the context failed: ${failure.message}`
    throw failure
  }
}
