import type { CommittedLine } from '@tapetree/session'
import type { LiveEvent } from './events.ts'

/** All that can be heard of a session. Lines are facts, in order and without gaps; everything else is live and may be missed. */
export type AgentEvent =
  | { type: 'line'; committed: CommittedLine }
  | LiveEvent
  /** Another session is shown from here on. */
  | { type: 'session_switched'; sessionId: string; previousId: string }

export type AgentListener = (event: AgentEvent) => void
