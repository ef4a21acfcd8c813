import type { BlobReference, Message } from './message.ts'

/** Members of every line except the header. The writer assigns `seq`. */
export interface LineBase {
  id: string
  timestamp: string
  seq: number
  /** The client command that this line is the effect of. */
  cause?: Cause
  /** The model call that produced this line. */
  request?: RequestReference
  /** Strings of this line that were moved to blobs; the line keeps only their first characters. */
  blobs?: MovedValue[]
}

export interface MovedValue extends BlobReference {
  /** JSON pointer into the line on disk. */
  path: string
  /** The blob holds JSON: a list, an object, or a string with lone surrogates, which UTF-8 cannot encode. */
  encoding?: 'json'
  /** Blobs that a moved list or object refers to. */
  holds?: BlobReference[]
}

export interface Cause {
  cmd: string
  client?: string
  /** Id of the token that sent the command; absent for the user of the process itself. */
  token?: string
  /** Digest of the operation and its arguments: the same id with another digest is another command. */
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
  /** Set if a subagent works in this session on behalf of the parent session. */
  subagent?: true
}

interface EntryBase extends LineBase {
  parentId: string | null
}

export interface MessageEntry extends EntryBase {
  type: 'message'
  message: Message
}

/** The system prompt and the tools, exactly as sent. */
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

/** A note: attached to the leaf of its time, and never the leaf itself. */
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

/** Takes the place of a lost line, so that later entries stay connected. */
export interface GapEntry extends EntryBase {
  type: 'gap'
  gap: { reason: string }
}

/** A node of a type that this build does not know. Kept and shown, but excluded from the context. */
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

/** Every entry type. A placeholder stands for a line that cannot be read; it is never appended. */
export const entryTypes = {
  message: 'node',
  system: 'node',
  model_change: 'node',
  thinking_level: 'node',
  compaction: 'node',
  branch_summary: 'node',
  custom: 'node',
  label: 'note',
  session_info: 'note',
  gap: 'placeholder',
  unknown: 'placeholder',
} as const satisfies Record<NodeEntry['type'], 'node' | 'placeholder'> & Record<NoteEntry['type'], 'note'>
