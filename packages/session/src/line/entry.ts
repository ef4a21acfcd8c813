import type { BlobReference, Message } from './message.ts'

/** What every line but the header has. `seq` is given when the line is written. */
export interface LineBase {
  id: string
  timestamp: string
  seq: number
  /** The client command that this line is the effect of. */
  cause?: Cause
  /** The model call that produced this line. */
  request?: RequestReference
  /** Strings of this line that lie in blobs; where they belong stands only how they begin. */
  blobs?: MovedValue[]
}

export interface MovedValue extends BlobReference {
  /** JSON pointer into the line as it stands on disk. */
  path: string
  /** The blob is the string as JSON: it has halves of characters that UTF-8 cannot say. */
  encoding?: 'json'
}

export interface Cause {
  cmd: string
  client?: string
  /** The id of the token it came by; absent for the user of the process itself. */
  token?: string
  /** Of the operation and its arguments: the same id with another digest is another command. */
  digest?: string
}

export interface RequestReference {
  sha256: string
  adapter: string
  adapterVersion: string
  params?: Record<string, unknown>
  leafId: string | null
}

/** Line 1 of a log. */
export interface Header {
  type: 'session'
  seq: number
  id: string
  timestamp: string
  version: number
  cwd?: string
  parentSession?: string
  parentEntry?: string
  /** A subagent works in this session, on behalf of the parent session. */
  subagent?: true
}

interface EntryBase extends LineBase {
  parentId: string | null
}

export interface MessageEntry extends EntryBase {
  type: 'message'
  message: Message
}

/** The system prompt and the tool set exactly as they are sent. */
export interface SystemEntry extends EntryBase {
  type: 'system'
  system: { prompt: string; tools: ToolDefinition[]; sha256: string }
}

export interface ToolDefinition {
  name: string
  description: string
  inputSchema: Record<string, unknown>
}

export interface ModelChangeEntry extends EntryBase {
  type: 'model_change'
  modelChange: ModelReference
}

export interface ModelReference {
  provider: string
  modelId: string
}

export interface ThinkingLevelEntry extends EntryBase {
  type: 'thinking_level'
  thinkingLevel: { thinkingLevel: string }
}

export interface CompactionEntry extends EntryBase {
  type: 'compaction'
  compaction: { summary: string; firstKeptEntryId: string; tokensBefore: number }
}

export interface BranchSummaryEntry extends EntryBase {
  type: 'branch_summary'
  branchSummary: { summary: string; fromId: string | null }
}

export interface CustomEntry extends EntryBase {
  type: 'custom'
  custom: { customType: string; data: Record<string, unknown> }
}

/** A note: it hangs on the leaf of its time and never becomes the leaf. */
export interface LabelEntry extends EntryBase {
  type: 'label'
  /** An empty or absent label removes the bookmark. */
  label: { targetId: string; label?: string | null }
}

/** A note with the session's display name. */
export interface SessionInfoEntry extends EntryBase {
  type: 'session_info'
  sessionInfo: { name: string }
}

/** Stands where a line was lost, so that what came after it still hangs together. */
export interface GapEntry extends EntryBase {
  type: 'gap'
  gap: { reason: string }
}

/** A node of a type that this build does not know: kept, shown, and no part of the context. */
export interface UnknownEntry extends EntryBase {
  type: 'unknown'
  unknown: { type: string; line: Record<string, unknown> }
}

/** A node of the tree. */
export type NodeEntry =
  | MessageEntry
  | SystemEntry
  | ModelChangeEntry
  | ThinkingLevelEntry
  | CompactionEntry
  | BranchSummaryEntry
  | CustomEntry
  | GapEntry
  | UnknownEntry

export type NoteEntry = LabelEntry | SessionInfoEntry

export type Entry = NodeEntry | NoteEntry
