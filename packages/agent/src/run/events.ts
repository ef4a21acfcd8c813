import type { LiveText, MessageError, CommittedLine } from '@tapetree/session'
import type { CompactionReason } from '../summary/compaction.ts'

/** All that can be heard of a session. Lines are facts, in order and without gaps; everything else is live and may be missed. */
export type AgentEvent =
  | { type: 'line'; committed: CommittedLine }
  | LiveEvent
  /** Another session is shown from here on. */
  | { type: 'session_switched'; sessionId: string; previousId: string }

export type AgentListener = (event: AgentEvent) => void

/** What whoever watches is told while it happens. All of it may be lost: the log has what counts. */
export type LiveEvent =
  | LiveText
  | { type: 'auto_retry_start'; runId: string; attempt: number; delayMs: number; error: MessageError }
  | { type: 'auto_retry_end'; runId: string; attempt: number; isAborted: boolean }
  | { type: 'auto_compaction_start'; runId: string; reason: CompactionReason }
  | { type: 'auto_compaction_end'; runId: string; reason: CompactionReason; outcome: 'compacted' | 'futile' | 'failed' }
  /** A waiting message is about to go out, after the delay it has; and then it is out. */
  | { type: 'queue_message_sending' | 'queue_message_sent'; messageId: string }
  /** The last run has ended, and none follows by itself. */
  | { type: 'agent_idle' }
