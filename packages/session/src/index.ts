export type { CommitListener, CommittedLine } from './committed-line.ts'
export { buildContext, type Context, type ContextInput, type ContextMessage, type ReasoningPolicy } from './context.ts'
export { chooseCutPoint, findCutPoints, type CutChoice, type CutKind, type CutPoint } from './cut-points.ts'
export { fromDisk, toDisk } from './codec.ts'
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
} from './entry.ts'
export { SessionError, type SessionErrorCode } from './errors.ts'
export type { PlaybackEvent, PlaybackEventOf, PlaybackEventType } from './event.ts'
export { isId, newId, newSubmissionId } from './ids.ts'
export type { InboxHold, WaitingMessage } from './inbox.ts'
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
} from './line.ts'
export type { LogLine } from './log-lines.ts'
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
} from './log-store.ts'
export {
  text,
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
} from './message.ts'
export { Player, type PlayerClock, type PlayerPosition, type PlayOptions } from './player.ts'
export { Queue } from './queue.ts'
export type { QueuedMessage, QueueFile } from './queue-file.ts'
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
} from './record.ts'
export { checksum, sealLine, type SealedLine } from './seal-line.ts'
export type { Redaction } from './redaction.ts'
export { Session, type AppendedMessage, type SessionTotals } from './session.ts'
export type { SubmitOptions } from './session-inbox.ts'
export type {
  SearchHit,
  SearchQuery,
  SessionInfo,
  SessionPage,
  SessionQuery,
  SessionStatus,
  StoppedRun,
} from './session-list.ts'
export type { Damage, OpenRun } from './session-state.ts'
export type { AppendContext } from './session-writer.ts'
export type { SessionSnapshot, SnapshotOptions } from './snapshot.ts'
export { foldOfTranscript } from './transcript-fold.ts'
export { SessionStore, type CreateOptions, type OpenOptions, type SessionStoreOptions } from './store.ts'
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
} from './transcript.ts'
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
} from './transcript-items.ts'
export type { InFlightItem, InFlightPart, LiveKind, LiveText } from './transcript-live.ts'
export type { TranscriptPath } from './transcript-path.ts'
export type { PersistentList } from './persistent-list.ts'
export type { TreeNode } from './tree-view.ts'
export type { VerifyReport } from './verify.ts'
