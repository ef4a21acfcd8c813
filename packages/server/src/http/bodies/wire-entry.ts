import { toDisk, type Entry, type Line, type Message } from '@tapetree/session'

/** An entry with the names that it has in the log. */
export function entryOnWire(entry: Entry): Record<string, unknown> {
  return { seq: entry.seq, ...toDisk(entry as unknown as { type: string }, entry) }
}

export function messageOnWire(message: Message): Record<string, unknown> & { role: string } {
  const { message: onDisk } = toDisk({ type: 'message', message }, { id: '', timestamp: '' })
  return onDisk as Record<string, unknown> & { role: string }
}

/** Nodes and notes hang somewhere; records do not. */
export function isEntryLine(line: Line): line is Entry {
  return 'parentId' in line
}
