import { findBytes, hasSeal, parseLine, shortestSealedLine, splitMerged, type ParsedLine } from './parse-line.ts'

/** A line found inside a stored line, or a piece that is not a line. */
export interface Part {
  at: number
  bytes: Uint8Array
  parsed: ParsedLine
}

/**
 * Splits a stored line that cannot be parsed: lines whose newline was lost, a torn line followed by another,
 * junk before or after a line. Only pieces with a valid checksum count as lines. Returns nothing if there are
 * none.
 */
export function takeApart(bytes: Uint8Array): Part[] {
  const parts: Part[] = []
  if (bytes.length < shortestSealedLine) return parts
  let junk = 0
  for (const piece of splitMerged(bytes)) {
    addParts(parts, piece, bytes)
    // Accidents do not leave this many junk pieces; the file was crafted to waste time.
    junk = parts.at(-1)?.parsed.type === 'line' ? 0 : junk + 1
    if (junk > maxJunkPieces) break
  }
  if (parts.length === 0) addParts(parts, { at: 0, bytes }, bytes)
  return parts.some(isProven) ? parts : []
}

/** Merges adjacent junk into one piece. */
function addParts(parts: Part[], piece: { at: number; bytes: Uint8Array }, all: Uint8Array): void {
  for (const part of partsOf(piece.bytes)) {
    const last = parts.at(-1)
    const at = piece.at + part.at
    if (!last || isProven(last) || isProven(part)) parts.push({ ...part, at })
    else last.bytes = all.subarray(last.at, at + part.bytes.length)
  }
}

/** The piece as a line; otherwise a line at its start, a line at its end, and the rest. */
function partsOf(piece: Uint8Array): Part[] {
  const whole = partAt(piece, 0, piece.length)
  if (isProven(whole)) return [whole]
  const seal = findBytes(piece, sealStart, 0)
  const first = seal === -1 ? whole : partAt(piece, 0, Math.min(seal + sealLength, piece.length))
  if (isProven(first)) return [first, ...lastOf(piece, first.bytes.length)]
  return lastOf(piece, 0)
}

function lastOf(piece: Uint8Array, from: number): Part[] {
  if (from === piece.length) return []
  const start = findBytes(piece, lineStart, from === 0 ? 1 : from)
  const last = start === -1 ? undefined : partAt(piece, start, piece.length)
  if (!last || !isProven(last)) return [partAt(piece, from, piece.length)]
  return start === from ? [last] : [partAt(piece, from, start), last]
}

function partAt(piece: Uint8Array, from: number, to: number): Part {
  const bytes = piece.subarray(from, to)
  return { at: from, bytes, parsed: hasSeal(bytes) ? parseLine(bytes) : unsealed }
}

const maxJunkPieces = 10_000

const unsealed: ParsedLine = { type: 'damaged', reason: 'checksum is missing', head: {} }

function isProven({ parsed }: Part): boolean {
  return parsed.type === 'line'
}

const encoder = new TextEncoder()
const lineStart = encoder.encode('{"seq":')
const sealStart = encoder.encode(',"crc":"')
const sealLength = sealStart.length + 10
