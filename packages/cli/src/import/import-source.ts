import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { SourceLine } from './source-lines.ts'

/** The programs whose sessions can be imported. */
export const sourceNames = ['claude-code', 'codex', 'pi', 'opencode', 'gemini'] as const
export type SourceName = (typeof sourceNames)[number]

/** As people call the programs. */
export const sourceTitles: Record<SourceName, string> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  pi: 'pi',
  opencode: 'opencode',
  gemini: 'Gemini CLI',
}

/** Why a line has no entry of its own, although what it says is in the session. */
export const mergeReasons = {
  repeats: 'other lines say the same',
  usage: 'its tokens and costs are part of the totals',
  attributes: 'it describes the session or other lines: folder, model, title, labels',
  position: 'it moves the place where the conversation goes on',
} as const
export type MergeReason = keyof typeof mergeReasons

/** Why nothing of a line is in the session. */
export const dropReasons = {
  harness: 'what the program told the model about itself and the machine: prompts, tools, environment',
  bookkeeping: 'state of the program, not of the conversation: file backups, settings, progress, its screen',
  permission: 'a decision about permissions: an imported session has none',
  queued: 'a queued message, which is a line of its own once it was delivered',
  empty: 'it says nothing',
  duplicate: 'a line with the same id came before',
  malformed: 'it is not the JSON of an object',
  'too-long': 'it is longer than the limit',
  'too-deep': 'its values are nested too deeply',
} as const
export type DropReason = keyof typeof dropReasons

/** What became of a line. */
export type Fate = { type: 'kept' } | { type: 'merged'; reason: MergeReason } | { type: 'dropped'; reason: DropReason }

/** A line of our log, before it has ids. Keys are unique in a session and the same at each import. */
export interface NewLine {
  key: string
  /** The entry before it; null at a root. Ignored for records. */
  parent: string | null
  timestamp: string
  draft: EntryDraft | RecordDraft
  /** Entries that the draft names, by their keys. */
  names?: { firstKept?: string; target?: string; from?: string | null }
}

/** What a reader made of one line. */
export interface Taken {
  /** The kind of the line, as the table of the source has it. */
  kind: string
  fate: Fate
  lines: NewLine[]
}

/** What is known about a session when its first lines were read. */
export interface SourceSession {
  /** As the program calls it; does not depend on the path. */
  id: string
  cwd?: string
  /** The session that this one was copied from, or whose subagent worked in it. */
  parentId?: string
  subagent?: true
}

/** Turns the lines of one session into lines of ours. What becomes of a line depends on no later line. */
export interface SourceReader {
  take(line: SourceLine & { type: 'read' }): Taken
  /** The key of the entry where the conversation goes on. */
  readonly leaf: string | null
  /** The start of the conversation, in ISO 8601. */
  readonly started: string | undefined
}

/** A session of another program on this machine. */
export interface FoundSession {
  source: SourceName
  session: SourceSession
  path: string
  bytes: number
  /** When the program last wrote it, in ISO 8601. */
  modified: string
  lines: (signal?: AbortSignal) => AsyncIterable<SourceLine>
}

/** A file that cannot be used, and why. */
export interface UnusableFile {
  source: SourceName
  path: string
  reason: string
}

export type Found = { type: 'session'; found: FoundSession } | { type: 'unusable'; file: UnusableFile }

/** What becomes of one kind of line; the reference page has a row for each. */
export interface LineKind {
  /** The name as the format has it. */
  line: string
  fate: 'kept' | MergeReason | DropReason
  /** Where it is in our session, or more about why it is not. */
  becomes: string
}

export const kept: Fate = { type: 'kept' }

export function merged(reason: MergeReason): Fate {
  return { type: 'merged', reason }
}

export function dropped(reason: DropReason): Fate {
  return { type: 'dropped', reason }
}
