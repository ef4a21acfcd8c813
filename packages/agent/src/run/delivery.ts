import { newId, SessionError, type Session, type WaitingMessage } from '@tapetree/session'
import type { PromptChanges } from './hooks.ts'
import type { OpenRun } from './open-run.ts'
import { preparationOf } from './prepare-run.ts'
import type { RunDeps } from './run-deps.ts'
import type { RunSettings } from './run-settings.ts'

/** The abort reason of a run whose owner closes while other agent sessions have the session open. */
export class OwnerLeft extends Error {
  override readonly name = 'OwnerLeft'

  constructor() {
    super('The agent session that started this run was closed.')
  }
}

/** The message to deliver next, if there is one. A steer needs no release: a person has just sent it. */
export function nextWaiting(
  session: Session,
  { sendsFollowUps }: Pick<RunSettings, 'sendsFollowUps'>,
): WaitingMessage | undefined {
  return session.nextWaiting('steer') ?? session.nextWaiting('follow-up', { onlyReleased: !sendsFollowUps })
}

/** What observers were told before a delivery. */
export interface Announcement {
  /** Undefined for a steer: steers are delivered without an announcement. */
  messageId: string | undefined
}

/** Announces the next message and waits its delay, or until the signal is aborted. Undefined if there is no message to deliver. */
export async function announceNext(deps: RunDeps, signal: AbortSignal): Promise<Announcement | undefined> {
  const { session, clock, settings, observe } = deps
  const first = nextWaiting(session, settings)
  if (!first) return undefined
  const messageId = first.delivery === 'follow-up' ? first.id : undefined
  if (messageId !== undefined) observe({ type: 'queue_message_sending', messageId })
  // A steer that came too late for its run has waited long enough.
  const delayMs = session.nextWaiting('steer') ? 0 : settings.followUpDelayMs
  // `deliverNext` checks the signal.
  if (delayMs > 0) await clock.wait(delayMs, signal).catch(() => undefined)
  return { messageId }
}

/**
 * Delivers the message that is next by now: the announced one may have been held, moved or removed. Returns its id, or undefined if
 * no message may be delivered.
 */
export async function deliverNext(open: OpenRun, announced: Announcement): Promise<string | undefined> {
  const { signal, deps } = open
  const { session, settings, observe } = deps
  const prepared = nextWaiting(session, settings)
  const { drafts, prompt } = await preparationOf(open, prepared?.message ?? '')
  await open.appendAll(drafts.map((draft) => ({ draft })))
  if (prepared && prompt && !signal.aborted) await changePrompt(open, prepared, prompt)
  // No await between this look and the delivery.
  const message = nextWaiting(session, settings)
  // If only the owner of this run has left, another owner delivers the message.
  if (message && signal.aborted && !(signal.reason instanceof OwnerLeft)) {
    await session.changeInbox({ action: 'hold', reason: 'the user stopped the agent before it was delivered' })
  }
  if (!message || signal.aborted) return undefined
  const isQueued = message.delivery === 'follow-up'
  if (isQueued && message.id !== announced.messageId) observe({ type: 'queue_message_sending', messageId: message.id })
  await open.deliver(message)
  if (isQueued) observe({ type: 'queue_message_sent', messageId: message.id })
  return message.id
}

/** Changes a queued message like an edit of the user. Leaves it as it is if it was edited or removed meanwhile. */
async function changePrompt(
  { deps: { session, settings } }: OpenRun,
  { id, message }: WaitingMessage,
  { text, changedBy }: NonNullable<PromptChanges['prompt']>,
): Promise<void> {
  const next = nextWaiting(session, settings)
  if (next?.id !== id || next.message !== message) return
  const cause = { cmd: newId(), client: `extension:${changedBy.join(', ')}` }
  await session.changeInbox({ action: 'edit', id, message: text }, cause).catch((error: unknown) => {
    if (!(error instanceof SessionError) || error.code !== 'message-not-found') throw error
  })
}
