import { maxReadLineBytes, type DiskLine, type Position } from '../line/line.ts'
import type { ReadableLog, StoredLine } from './log-store.ts'
import { takeApart } from '../line/merged-line.ts'
import { parseLine, salvageHead, shortestPlainLine, type ParsedLine } from '../line/parse-line.ts'
import type { Fragment, SessionState } from '../state/session-state.ts'

export interface ReplayedLine extends Position {
  seq: number
  line: DiskLine
}

/** Called for every accepted line, after the state has applied it. */
export type Watch = (accepted: ReplayedLine) => void

/**
 * Folds the log into the state, from a position to the end. Unreadable lines are recorded as damage and never
 * throw.
 */
export async function replay(
  log: ReadableLog,
  state: SessionState,
  options: { from: number; to?: number; watch?: Watch },
): Promise<void> {
  const reading = new Reading(state, options.watch)
  for await (const batch of log.lines(options.from)) {
    for (const stored of batch) {
      if (options.to !== undefined && stored.at >= options.to) return reading.finish()
      reading.take(stored)
    }
  }
  reading.finish()
}

/** The stateful part of reading: fragments wait until the next good line tells how many lines were lost. */
export class Reading {
  readonly #state: SessionState
  readonly #watch: Watch | undefined
  #fragments: Fragment[] = []
  /** All fragments, including those beyond the kept ones. */
  #fragmentCount = 0

  constructor(state: SessionState, watch?: Watch) {
    this.#state = state
    this.#watch = watch
  }

  take(stored: StoredLine): void {
    this.#state.end = stored.next
    const bytes = textOf(stored)
    if (!bytes) return
    const parsed = parseStored(stored, bytes)
    const at = stored.at + stored.bytes.length - bytes.length
    if (parsed.type === 'line') this.#accept(parsed, { at, size: bytes.length })
    else if (!this.#acceptParts(bytes, at)) this.#keep(stored, parsed)
  }

  finish(): void {
    const { seq } = this.#state
    if (this.#fragmentCount === 0) return
    // The first fragment follows the last good line, so its seq is known; its own claim may be damaged.
    const others = this.#fragments.slice(1).map(({ head }) => head.seq ?? 0)
    this.#settle(Math.max(seq + this.#fragmentCount, ...others.filter((each) => each <= seq + maxBelievedGap)))
  }

  #accept(parsed: ParsedLine & { type: 'line' }, place: Position): void {
    const state = this.#state
    const { line, sealed, crc } = parsed
    if (!sealed && state.sealed) {
      this.#keep(place, { reason: 'checksum is missing', head: {} })
      return
    }
    // A plain line has no seq: it gets the next number after the unreadable ones.
    const seq = line.seq ?? state.seq + this.#fragmentCount + 1
    if (isForeignSeq(seq, place.at, { seq: state.seq, end: state.last.at + state.last.size })) {
      state.report({ ...placeOf(place), seq: state.seq, count: 0, reason: `a foreign line with seq ${seq}` })
      return
    }
    if (this.#fragmentCount > 0 || seq > state.seq + 1) this.#settle(seq - 1)
    if (seq === 1 && line.type !== 'session') {
      state.report({ ...placeOf(place), seq, count: 0, reason: 'the header is missing' })
    }
    state.apply(line, { seq, crc, at: place.at, size: place.size })
    this.#watch?.({ seq, line, at: place.at, size: place.size })
  }

  /** Splits merged lines. */
  #acceptParts(bytes: Uint8Array, at: number): boolean {
    const parts = takeApart(bytes)
    if (parts.length === 0) return false
    const { seq } = this.#state
    this.#state.report({ at, size: bytes.length, seq, count: 0, reason: 'a newline was lost' })
    for (const part of parts) {
      const place = { at: at + part.at, size: part.bytes.length }
      if (part.parsed.type === 'line') this.#accept(part.parsed, place)
      else this.#keep(place, part.parsed)
    }
    return true
  }

  #keep({ at, size }: Position, { reason, head }: Pick<Fragment, 'reason' | 'head'>): void {
    const last = this.#fragments[maxFragments - 1]
    this.#fragmentCount++
    if (last) last.size = at + size - last.at
    else this.#fragments.push({ at, size, reason, head })
  }

  #settle(throughSeq: number): void {
    this.#state.lose(this.#fragments, throughSeq)
    this.#fragments = []
    this.#fragmentCount = 0
  }
}

/**
 * Whether a seq does not belong here: not above the last one, or further ahead than the bytes in between
 * explain. Leaves some room for lines that were cut out.
 */
export function isForeignSeq(seq: number, at: number, last: { seq: number; end: number }): boolean {
  return seq <= last.seq || seq > last.seq + maxBelievedGap + Math.max(0, at - last.end)
}

/** A seq that skips more lines than this is rejected unless the bytes in between account for it. */
const maxBelievedGap = 1_000_000

/** Longer runs of fragments are described by the first ones; the last kept fragment covers the rest. */
const maxFragments = 1000

function placeOf({ at, size }: Position): Position {
  return { at, size }
}

/** The bytes to parse, without a byte order mark; undefined if none are left. */
export function textOf({ at, bytes }: Pick<StoredLine, 'at' | 'bytes'>): Uint8Array | undefined {
  const text = at === 0 && startsWithByteOrderMark(bytes) ? bytes.subarray(3) : bytes
  return isBlank(text) ? undefined : text
}

/** Only the start of an over-long line is available, and it must not be parsed as the whole line. */
export function parseStored(stored: StoredLine, text: Uint8Array): ParsedLine {
  if (text.length < shortestPlainLine) return tooShort
  if (stored.bytes.length === stored.size) return parseLine(text)
  return { type: 'damaged', reason: `longer than ${maxReadLineBytes} bytes`, head: salvageHead(text) }
}

const tooShort: ParsedLine = { type: 'damaged', reason: 'not valid JSON', head: {} }

function startsWithByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function isBlank(bytes: Uint8Array): boolean {
  if (bytes.length >= 64) return false
  for (const byte of bytes) if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false
  return true
}
