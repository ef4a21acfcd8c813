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
export type {
  BranchSummaryEntry,
  Cause,
  CompactionEntry,
  CustomEntry,
  Entry,
  GapEntry,
  Header,
  LabelEntry,
  MessageEntry,
  MovedValue,
  ModelChangeEntry,
  ModelReference,
  NodeEntry,
  NoteEntry,
  RequestReference,
  SessionInfoEntry,
  SystemEntry,
  ThinkingLevelEntry,
  ToolDefinition,
  UnknownEntry,
} from './line/entry.ts'
export { SessionError, type SessionErrorCode } from './errors.ts'
export type { PlaybackEvent, PlaybackEventOf, PlaybackEventType } from './view/event.ts'
export { isId, newId, newSubmissionId } from './line/ids.ts'
export type { InboxHold, WaitingMessage } from './state/inbox.ts'
export {
  currentFormat,
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
export type {
  AttemptRecord,
  DamageRecord,
  Delivery,
  ErrorRecord,
  FileReadRecord,
  FileWriteRecord,
  LeafRecord,
  PermissionOption,
  PermissionRequestRecord,
  PermissionResultRecord,
  PlanRecord,
  RunEndRecord,
  RunOutcome,
  RunStartRecord,
  SessionEndRecord,
  SessionRecord,
  SubmissionChange,
  SubmissionRecord,
  ToolStartRecord,
  UnknownRecord,
  UsageRecord,
  WriterRecord,
} from './line/record.ts'
export { checksum, sealLine, type SealedLine } from './line/seal-line.ts'
export type { Redaction } from './log/session-writer.ts'
export { Session, type AppendedMessage, type SessionTotals } from './store/session.ts'
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
