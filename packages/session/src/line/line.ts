import { entryTypes, type Entry, type Header, type NodeEntry, type NoteEntry } from './entry.ts'
import { recordTypes, type SessionRecord } from './record.ts'

/** One line of a log, as the API shows it. */
export type Line = Header | Entry | SessionRecord

/** One line of a log on disk: snake_case, with the payload nested under the name of its type. */
export interface DiskLine {
  seq?: number
  type: string
  id: string
  parent_id?: string | null
  timestamp?: string
  crc?: string
  [member: string]: unknown
}

/**
 * Where a line lies in its store. `at` grows from line to line, and only the store knows what it counts; `size` is the
 * length in bytes, without the newline. Byte k of a line is at `at + k`.
 */
export interface Position {
  at: number
  size: number
}

export type Draft<T> = T extends unknown ? Omit<T, 'seq' | 'id' | 'timestamp' | 'parentId'> & { id?: string } : never

/** A line to append. The writer adds seq, time and, if absent, the id. */
export type EntryDraft = Draft<NodeEntry | NoteEntry>
export type RecordDraft = Draft<SessionRecord>

export const currentFormat = 1
export const headerVersion = 1

/** The writer keeps lines below this size by moving their largest values to blobs. */
export const maxWrittenLineBytes = 192 * 1024
/** Readers report longer lines as damage and still open the session. */
export const maxReadLineBytes = 16 * 1024 * 1024
export const maxNesting = 64

export type LineKind =
  | 'header'
  | (typeof entryTypes)[keyof typeof entryTypes]
  | (typeof recordTypes)[keyof typeof recordTypes]

const kinds = new Map<string, LineKind>([
  ['session', 'header'],
  ...Object.entries(entryTypes),
  ...Object.entries(recordTypes),
])

/** The kind of a line type; undefined if this build does not know the type. */
export function lineKind(type: string): LineKind | undefined {
  return kinds.get(type)
}

export function isNote(line: Pick<DiskLine, 'type'>): boolean {
  return lineKind(line.type) === 'note'
}

/** Entries have a parent or null; records have no such member. */
export function isEntry(line: DiskLine): boolean {
  return line.parent_id !== undefined
}
