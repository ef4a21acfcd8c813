/** The lines of a log: entries, records, and how they are written. */
export { fromDisk, toDisk } from './line/codec.ts'
export {
  entryTypes,
  type BranchSummaryEntry,
  type CompactionEntry,
  type CustomEntry,
  type Entry,
  type GapEntry,
  type Header,
  type LabelEntry,
  type MessageEntry,
  type MovedValue,
  type ModelChangeEntry,
  type NodeEntry,
  type NoteEntry,
  type RequestReference,
  type SessionInfoEntry,
  type SystemEntry,
  type ThinkingLevelEntry,
  type UnknownEntry,
} from './line/entry.ts'
export { newSubmissionId } from './line/ids.ts'
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
export type { Draft, LineKind } from './line/line.ts'
export type { PermissionModeRecord } from './line/record.ts'
