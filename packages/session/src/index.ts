export type { CommitListener, CommittedLine } from './log/group-commit.ts'
export {
  buildContext,
  type Context,
  type ContextInput,
  type ContextMessage,
  type ReasoningPolicy,
} from './view/context.ts'
export { chooseCutPoint, findCutPoints, type CutChoice, type CutKind, type CutPoint } from './view/cut-points.ts'
export { fromDisk, toDisk } from './line/codec.ts'
export {
  entryTypes,
  type BranchSummaryEntry,
  type Cause,
  type CompactionEntry,
  type CustomEntry,
  type Entry,
  type GapEntry,
  type Header,
  type LabelEntry,
  type MessageEntry,
  type MovedValue,
  type ModelChangeEntry,
  type ModelReference,
  type NodeEntry,
  type NoteEntry,
  type RequestReference,
  type SessionInfoEntry,
  type SystemEntry,
  type ThinkingLevelEntry,
  type ToolDefinition,
  type UnknownEntry,
} from './line/entry.ts'
export { SessionError, type SessionErrorCode } from './errors.ts'
export type { PlaybackEvent, PlaybackEventOf, PlaybackEventType } from './view/event.ts'
export { isId, newId, newSubmissionId } from './line/ids.ts'
export type { InboxHold, WaitingMessage } from './state/inbox.ts'
export {
  currentFormat,
  lineKind,
  maxNesting,
  maxReadLineBytes,
  maxWrittenLineBytes,
  type DiskLine,
  type EntryDraft,
  type Line,
  type Position,
  type RecordDraft,
} from './line/line.ts'
export type { LogLine } from './log/log-lines.ts'
export {
  localScope,
  type AppendOptions,
  type AppendResult,
  type Claim,
  type ClaimOptions,
  type DerivedFile,
  type Durability,
  type LogStore,
  type Owner,
  type Place,
  type ReadableLog,
  type Scope,
  type StoredLine,
  type WritableLog,
} from './log/log-store.ts'
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
export { Player, type PlayerClock, type PlayerPosition, type PlayOptions } from './view/player.ts'
export { Queue } from './store/queue.ts'
export type { QueuedMessage, QueueFile } from './state/inbox.ts'
export {
  recordTypes,
  type AttemptRecord,
  type DamageRecord,
  type Delivery,
  type ErrorRecord,
  type FileReadRecord,
  type FileWriteRecord,
  type LeafRecord,
  type PermissionOption,
  type PermissionRequestRecord,
  type PermissionResultRecord,
  type PlanRecord,
  type RunEndRecord,
  type RunOutcome,
  type RunStartRecord,
  type SessionEndRecord,
  type SessionRecord,
  type SubmissionChange,
  type SubmissionRecord,
  type ToolStartRecord,
  type UnknownRecord,
  type UsageRecord,
  type WriterRecord,
} from './line/record.ts'
export { checksum, sealLine, type SealedLine } from './line/seal-line.ts'
export type { Redaction } from './log/session-writer.ts'
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
export type { AppendContext } from './log/session-writer.ts'
export type { SessionSnapshot, SnapshotOptions } from './store/snapshot.ts'
export { foldOfTranscript } from './view/transcript.ts'
export { SessionStore, type CreateOptions, type OpenOptions, type SessionStoreOptions } from './store/session-store.ts'
export { MemoryLogStore, memoryStore } from './stores/memory/memory-store.ts'
export {
  emptyTranscript,
  reduceTranscript,
  type PermissionRequest,
  type SnapshotFold,
  type SnapshotInput,
  type Transcript,
  type TranscriptDamage,
  type TranscriptError,
  type TranscriptInput,
  type TranscriptRun,
} from './view/transcript.ts'
export type {
  AssistantItem,
  AssistantPart,
  BashItem,
  BranchSummaryItem,
  CompactionItem,
  CustomItem,
  GapItem,
  ModelItem,
  SystemItem,
  ThinkingLevelItem,
  ToolCallPart,
  ToolCallResult,
  ToolResultItem,
  TranscriptItem,
  UserItem,
} from './view/transcript-items.ts'
export type { InFlightItem, InFlightPart, LiveKind, LiveText } from './view/transcript-live.ts'
export type { TranscriptPath } from './view/transcript-path.ts'
export type { PersistentList } from './util/persistent-list.ts'
export type { TreeNode } from './view/tree-view.ts'
export type { VerifyReport } from './log/verify.ts'
