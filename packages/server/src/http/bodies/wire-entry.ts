import { snakeCase } from '@tapetree/session/util/json'
import type { Message } from '@tapetree/session'
import { toDisk, type Entry, type Line } from '@tapetree/session/format'

/** An entry with the names of the log. */
export function entryOnWire(entry: Entry): Record<string, unknown> {
  return { seq: entry.seq, ...toDisk(entry as unknown as { type: string }, entry) }
}

export function messageOnWire(message: Message): Record<string, unknown> & { role: string } {
  const { message: onDisk } = toDisk({ type: 'message', message }, { id: '', timestamp: '' })
  return onDisk as Record<string, unknown> & { role: string }
}

/** Nodes and notes have a parent; records do not. */
export function isEntryLine(line: Line): line is Entry {
  return 'parentId' in line
}

/** Foreign members keep their names: tool input, custom data, provider metadata. */
const foreign = new Set(['input', 'data', 'params', 'providerMetadata', 'inputSchema'])

/** Converts member names to those of the wire. */
export function toWire(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toWire)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [snakeCase(name), foreign.has(name) ? member : toWire(member)]),
  )
}
