import type { MessageError, CommittedLine } from '@tapetree/session'
import type { LiveText } from '@tapetree/session/view'
import type { CompactionReason } from '../summary/compaction.ts'

/** All events of a session. Lines are facts, in order and without gaps; all other events are live and may be missed. */
export type AgentEvent =
  | { type: 'line'; committed: CommittedLine }
  | LiveEvent
  /** The agent shows another session from here on. */
  | { type: 'session_switched'; sessionId: string; previousId: string }

export type AgentListener = (event: AgentEvent) => void

/** Live notifications. All of them may be lost: the log has the facts. */
export type LiveEvent =
  | LiveText
  | { type: 'auto_retry_start'; runId: string; attempt: number; delayMs: number; error: MessageError }
  | { type: 'auto_retry_end'; runId: string; attempt: number; isAborted: boolean }
  | { type: 'auto_compaction_start'; runId: string; reason: CompactionReason }
  | { type: 'auto_compaction_end'; runId: string; reason: CompactionReason; outcome: 'compacted' | 'futile' | 'failed' }
  /** A queued message is about to be delivered, after its delay; then it is delivered. */
  | { type: 'queue_message_sending' | 'queue_message_sent'; messageId: string }
  /** The last run has ended, and no other follows by itself. */
  | { type: 'agent_idle' }
