export type { CommitListener, CommittedLine } from './log/group-commit.ts'
export type { Context, ContextMessage } from './view/context.ts'
export type { Cause, ModelReference, ToolDefinition } from './line/entry.ts'
export { SessionError, type SessionErrorCode } from './errors.ts'
export { isId, newId } from './line/ids.ts'
export type { InboxHold, WaitingMessage } from './state/inbox.ts'
export { localScope, type Durability, type Owner, type Place, type Scope } from './log/log-store.ts'
export {
  messageRoles,
  text,
  textOf,
  type BashExecution,
  type BlobReference,
  type Content,
  type ImageContent,
  type ImageSource,
  type Message,
  type MessageError,
  type MessageInput,
  type MessageRole,
  type ReasoningContent,
  type TextContent,
  type ToolResult,
  type ToolResultContent,
  type ToolUse,
  type ToolUseContent,
  type Usage,
} from './line/message.ts'
export { Queue } from './store/queue.ts'
export type { RunOutcome } from './line/record.ts'
export { Session, type AppendedMessage, type Erased, type SessionTotals } from './store/session.ts'
export type { SubmitOptions } from './store/session-inbox.ts'
export type {
  SearchHit,
  SearchQuery,
  SessionInfo,
  SessionPage,
  SessionQuery,
  SessionStatus,
  StoppedRun,
} from './state/session-info.ts'
export type { Damage, OpenRun } from './state/session-state.ts'
export { SessionStore, type CreateOptions, type OpenOptions, type SessionStoreOptions } from './store/session-store.ts'
export { memoryStore } from './stores/memory/memory-store.ts'
export type { VerifyReport } from './log/verify.ts'
