import type { InboxHold, SessionTotals, WaitingMessage } from '@tapetree/session'
import type { ThinkingLevel } from '../models/model.ts'
import type { PermissionMode } from '../permissions/modes.ts'
import type { PermissionRequest } from '../permissions/requests.ts'
import type { Conversation } from './conversation.ts'
import type { MissingModel } from './model-choice.ts'

/** How a session stands just now. */
export interface AgentState {
  sessionId: string
  name: string
  leafId: string | null
  model: { provider: string; modelId: string }
  /** The session used this model last and it is gone; `model` takes its place until another one is chosen. */
  missingModel: MissingModel | null
  thinkingLevel: ThinkingLevel
  mode: PermissionMode
  isBusy: boolean
  /** The run that is open. With `isBusy` false, its process has died: `resume` goes on with it. */
  openRun: string | null
  waiting: readonly WaitingMessage[]
  hold: InboxHold | null
  questions: PermissionRequest[]
  totals: SessionTotals
}

export function stateOf({ session, choice, mode, slot, requests }: Conversation): AgentState {
  const { provider, id: modelId } = choice.model
  const { messages: waiting, hold } = session.inbox
  return {
    sessionId: session.id,
    name: session.name,
    leafId: session.leafId,
    model: { provider, modelId },
    missingModel: choice.missing ?? null,
    thinkingLevel: choice.thinkingLevel ?? 'off',
    mode,
    isBusy: slot.isBusy,
    openRun: session.openRun?.runId ?? null,
    waiting,
    hold,
    questions: requests.pending,
    totals: session.totals,
  }
}
