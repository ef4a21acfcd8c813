import type { AppendResult, LinePosition } from '../../log/log-store.ts'
import type { SealedLine } from '../../line/seal-line.ts'
import type { Database } from './database.ts'
import { positionOf } from './positions.ts'

/** The lines that one session appends. */
export interface SessionBatch {
  tenant: string
  key: string
  term: number
  head: number
  lines: readonly SealedLine[]
}

interface Waiting extends SessionBatch {
  resolve: (result: AppendResult) => void
}

/**
 * Appends for all sessions of a process: batches that arrive together, or while all connections are busy, share one
 * statement and one commit. A session is in a statement once.
 */
export class AppendQueue {
  readonly #database: Database
  #waiting: Waiting[] = []
  #isScheduled = false
  #underWay = 0

  constructor(database: Database) {
    this.#database = database
  }

  append(batch: SessionBatch): Promise<AppendResult> {
    return new Promise((resolve) => {
      this.#waiting.push({ ...batch, resolve })
      this.#schedule()
    })
  }

  /** Waits for the other callbacks of this turn of the event loop, and for no timer. */
  #schedule(): void {
    if (this.#isScheduled || this.#underWay >= this.#database.appendConnections) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const most = this.#share()
      while (this.#waiting.length > 0 && this.#underWay < this.#database.appendConnections) {
        this.#underWay++
        void this.#send(this.#take(most)).finally(() => {
          this.#underWay--
          this.#schedule()
        })
      }
    })
  }

  /**
   * How many lines one statement takes. Free connections share what waits: while one statement waits for the disk and
   * the standbys, the server works on another.
   */
  #share(): number {
    let lines = 0
    for (const batch of this.#waiting) lines += batch.lines.length
    const free = this.#database.appendConnections - this.#underWay
    return Math.min(maxLines, Math.max(minLines, Math.ceil(lines / free)))
  }

  #take(most: number): Waiting[] {
    const taken: Waiting[] = []
    const left: Waiting[] = []
    const keys = new Set<string>()
    let lines = 0
    let length = 0
    for (const batch of this.#waiting) {
      const isFull = taken.length > 0 && (lines + batch.lines.length > most || length > maxLength)
      if (isFull || keys.has(batch.key)) {
        left.push(batch)
        // A later batch of this session must not overtake it.
        keys.add(batch.key)
        continue
      }
      keys.add(batch.key)
      taken.push(batch)
      lines += batch.lines.length
      for (const { text } of batch.lines) length += text.length
    }
    this.#waiting = left
    return taken
  }

  async #send(batches: readonly Waiting[]): Promise<void> {
    const sent = await this.#database
      .append<{ place: number; first: number }>(statement, valuesOf(batches))
      .catch((cause: unknown) => ({ type: 'unknown' as const, cause }))
    switch (sent.type) {
      case 'done': {
        const first = new Map(sent.rows.map((row) => [row.place, row.first]))
        for (const [index, batch] of batches.entries()) batch.resolve(resultOf(batch, first.get(index + 1)))
        return
      }
      case 'unsent':
        for (const { resolve } of batches) resolve({ type: 'failed', cause: sent.cause, final: false, isPassing: true })
        return
      case 'rejected':
        for (const { resolve } of batches) resolve({ type: 'failed', cause: sent.cause, final: false })
        return
      case 'unknown':
        for (const { resolve } of batches) resolve({ type: 'unknown', cause: sent.cause })
        return
      default:
        sent satisfies never
    }
  }
}

const statement = 'select place, first from tapetree.append_lines($1, $2, $3, $4, $5, $6, $7, $8)'
/**
 * Fewer lines are not worth a statement of their own: the fixed cost of a statement and its commit, on the server and on
 * its standbys, is about that of as many lines.
 */
const minLines = 32
const maxLines = 256
const maxLength = 4 * 1024 * 1024

/** A line has no newline, so one text holds all of them without escapes. */
function valuesOf(batches: readonly SessionBatch[]): unknown[] {
  const owners: number[] = []
  const offsets: number[] = []
  const texts: string[] = []
  for (const [index, { lines }] of batches.entries()) {
    for (const [offset, { text }] of lines.entries()) {
      owners.push(index + 1)
      offsets.push(offset + 1)
      texts.push(text)
    }
  }
  return [
    textArray(batches.map(({ tenant }) => tenant)),
    numberArray(batches.map(({ key }) => key)),
    numberArray(batches.map(({ term }) => term)),
    numberArray(batches.map(({ head }) => head)),
    numberArray(batches.map(({ lines }) => lines.length)),
    numberArray(owners),
    numberArray(offsets),
    texts.join('\n'),
  ]
}

/** As PostgreSQL writes an array. The driver escapes each element, which takes several times as long. */
function numberArray(numbers: readonly (number | string)[]): string {
  return `{${numbers.join(',')}}`
}

/** Neighbors are mostly equal, so most need not be quoted again. */
function textArray(texts: readonly string[]): string {
  let last: string | undefined
  let quoted = ''
  const elements = texts.map((text) => {
    if (text !== last) quoted = `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`
    last = text
    return quoted
  })
  return `{${elements.join(',')}}`
}

function resultOf({ lines }: SessionBatch, first: number | undefined): AppendResult {
  if (first === undefined) return { type: 'fenced', reason: 'its term or its last line has changed' }
  const positions = lines.map(({ text }, index): LinePosition => positionOf(first + index, Buffer.byteLength(text)))
  return { type: 'appended', positions }
}
