import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** A line of a file, or a row of a database. */
export type SourceLine =
  | {
      type: 'read'
      /** Counted from 1. */
      number: number
      /** Of the content, for lines without an id. */
      hash: string
      value: Record<string, unknown>
    }
  | { type: 'unreadable'; number: number; reason: 'malformed' | 'too-long' | 'too-deep' }

/** Longer lines are reported and skipped. */
export const maxLineBytes = 64 * 2 ** 20
/** Deeper values are reported and skipped: our lines have at most 64 levels, and a line of ours adds its own. */
export const maxDepth = 48

/**
 * Reads a file of JSON lines without changing it. Memory is limited by the longest line. A last line without a newline that is not JSON is
 * a line that is still being written: it is left to the next import.
 */
export async function* readJsonLines(path: string, signal?: AbortSignal): AsyncGenerator<SourceLine> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return
    // Lines that are appended in the meantime are left to the next import.
    yield* splitLines(handle.createReadStream({ end: Math.max(0, stat.size - 1), autoClose: false }), signal)
  } finally {
    await handle.close()
  }
}

async function* splitLines(chunks: AsyncIterable<unknown>, signal?: AbortSignal): AsyncGenerator<SourceLine> {
  let pending: Buffer[] = []
  let size = 0
  let number = 0
  const take = (): SourceLine | undefined => {
    number += 1
    const line = size > maxLineBytes ? undefined : Buffer.concat(pending)
    pending = []
    size = 0
    return line ? sourceLineOf(line, number) : { type: 'unreadable', number, reason: 'too-long' }
  }
  for await (const chunk of chunks) {
    signal?.throwIfAborted()
    let rest = chunk as Buffer
    for (let end = rest.indexOf(newline); end !== -1; end = rest.indexOf(newline)) {
      size += end
      if (size <= maxLineBytes) pending.push(rest.subarray(0, end))
      rest = rest.subarray(end + 1)
      const line = take()
      if (line) yield line
    }
    size += rest.length
    if (size <= maxLineBytes) pending.push(rest)
    else pending = []
  }
  if (size === 0) return
  const last = take()
  if (last?.type === 'read') yield last
}

const newline = 0x0a

/** Undefined for a blank line. */
function sourceLineOf(bytes: Buffer, number: number): SourceLine | undefined {
  const text = bytes
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .trim()
  if (text === '') return undefined
  return sourceLineOfText(text, number)
}

/** The same for text that is known to be one line. */
export function sourceLineOfText(text: string, number: number): SourceLine {
  if (text.length > maxLineBytes || (text.length > maxValues && hasManyValues(text)))
    return { type: 'unreadable', number, reason: 'too-long' }
  if (isDeep(text)) return { type: 'unreadable', number, reason: 'too-deep' }
  const value = parsed(text)
  if (!value) return { type: 'unreadable', number, reason: 'malformed' }
  return { type: 'read', number, hash: hashOf(text), value }
}

/** Our log could not read as many values again. */
function hasManyValues(json: string): boolean {
  let values = 0
  for (let index = 0; index < json.length && values <= maxValues; index++) {
    const code = json.charCodeAt(index)
    if (code === 0x22) index = endOfString(json, index)
    else if (code === 0x2c || code === 0x5b || code === 0x7b) values++
  }
  return values > maxValues
}

const maxValues = 2 ** 20

export function hashOf(...parts: readonly string[]): string {
  const hash = createHash('sha256')
  // Without a separator, different parts could have the same hash.
  for (const part of parts) hash.update(`${part.length}:`).update(part)
  return hash.digest('hex')
}

/** Checked before parsing: a million open brackets would take seconds and gigabytes. */
export function isDeep(json: string, limit = maxDepth): boolean {
  let depth = 0
  for (let index = 0; index < json.length; index++) {
    const code = json.charCodeAt(index)
    if (code === 0x22) index = endOfString(json, index)
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > limit) return true
    } else if (code === 0x5d || code === 0x7d) depth--
  }
  return false
}

function endOfString(json: string, quote: number): number {
  for (let end = json.indexOf('"', quote + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0
    while (json[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end
  }
  return json.length
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
