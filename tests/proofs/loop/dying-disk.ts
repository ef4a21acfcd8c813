import {
  SessionError,
  type BlobReference,
  type Place,
  type Scope,
  type SearchHit,
  type SessionPage,
} from '@tapetree/session'
import type { Position, SealedLine } from '@tapetree/session/format'
import type {
  AppendOptions,
  AppendResult,
  Claim,
  DerivedData,
  LinePosition,
  LogStore,
  StoredLine,
  WritableLog,
} from '@tapetree/session/log-store'

/** When a process dies, counted in lines from now: before it writes that line, or after it without having heard so. */
export interface Death {
  line: number
  when: 'before' | 'after'
}

/** What lies on a disk when its process is gone. */
export interface Remains {
  lines: readonly StoredLine[]
  checkpoint: string[]
  term: number
}

export const emptyDisk: Remains = { lines: [], checkpoint: [], term: 0 }

interface Batch {
  lines: readonly SealedLine[]
  answer: (result: AppendResult) => void
}

/**
 * A store of one session in memory whose process can die at any line. A dead one writes nothing and answers nobody, so whoever
 * still waits for it waits for ever; what remains can be opened by the next process.
 */
export class DyingDisk implements LogStore {
  readonly #lines: StoredLine[]
  readonly #isSlow: boolean
  readonly #keepsCheckpoint: boolean
  #checkpoint: string[]
  #term: number
  #death: Death | undefined
  #waiting: Batch | undefined
  isDead = false

  constructor(remains: Remains, options: { isSlow?: boolean; keepsCheckpoint?: boolean } = {}) {
    this.#lines = [...remains.lines]
    this.#term = remains.term
    this.#checkpoint = [...remains.checkpoint]
    this.#isSlow = options.isSlow ?? false
    this.#keepsCheckpoint = options.keepsCheckpoint ?? true
  }

  get lines(): readonly StoredLine[] {
    return this.#lines
  }

  get remains(): Remains {
    return { lines: [...this.#lines], checkpoint: [...this.#checkpoint], term: this.#term }
  }

  get term(): number {
    return this.#term
  }

  /** A slow disk has lines that it was told to keep and has not kept. */
  get isWriting(): boolean {
    return this.#waiting !== undefined
  }

  get isDoomed(): boolean {
    return this.#death !== undefined
  }

  die(): void {
    this.isDead = true
  }

  dieAt(death: Death | undefined): void {
    this.#death = death && { ...death }
  }

  /** A slow disk finishes what it is at. */
  finishWriting(): void {
    const batch = this.#waiting
    this.#waiting = undefined
    const result = batch && this.#write(batch.lines)
    if (result) batch.answer(result)
  }

  append(lines: readonly SealedLine[], { term, head }: AppendOptions): AppendResult | Promise<AppendResult> {
    if (this.isDead) return never()
    if (term !== this.#term) return { type: 'fenced', reason: `its term is now ${this.#term}` }
    if (head !== this.#lines.length) return { type: 'fenced', reason: `its last line is now ${this.#lines.length}` }
    if (!this.#isSlow) return this.#write(lines) ?? never()
    return new Promise((answer) => {
      this.#waiting = { lines, answer }
    })
  }

  /** Undefined where the process died over it. */
  #write(lines: readonly SealedLine[]): AppendResult | undefined {
    const positions: LinePosition[] = []
    for (const line of lines) {
      const isLast = this.#death !== undefined && --this.#death.line === 0
      if (isLast && this.#death?.when === 'before') this.die()
      if (this.isDead) return undefined
      positions.push(this.#push(line.text))
      if (isLast) this.die()
    }
    return this.isDead ? undefined : { type: 'appended', positions }
  }

  #push(text: string): LinePosition {
    const bytes = encoder.encode(text)
    const at = this.#lines.at(-1)?.next ?? 0
    const position = { at, size: bytes.length, next: at + bytes.length + 1 }
    this.#lines.push({ ...position, bytes })
    return position
  }

  keepDerived({ checkpoint }: DerivedData): void {
    if (!checkpoint || !this.#keepsCheckpoint || this.isDead) return
    for (const [number, content] of checkpoint.changed) this.#checkpoint[number] = content
    this.#checkpoint.length = checkpoint.count
  }

  get checkpoint(): string[] {
    return this.#checkpoint
  }

  async create(_scope: Scope, _sessionId: string, header: SealedLine): Promise<void> {
    this.#push(header.text)
  }

  async open(): Promise<WritableLog> {
    return new DiskLog(this)
  }

  async claim(): Promise<Claim> {
    this.#term++
    return { type: 'claimed', log: new DiskLog(this) }
  }

  async list(): Promise<SessionPage> {
    return { sessions: [] }
  }

  async search(): Promise<SearchHit[]> {
    return []
  }

  async placeOf(): Promise<Place | undefined> {
    return 'active'
  }

  async discard(): Promise<void> {
    throw notHere()
  }

  async storedBytes(): Promise<number> {
    throw notHere()
  }

  async move(): Promise<void> {
    throw notHere()
  }

  async erase(): Promise<void> {
    throw notHere()
  }

  async close(): Promise<void> {}
}

class DiskLog implements WritableLog {
  readonly #disk: DyingDisk
  readonly writer = { host: 'stage', process: 'stage' }
  readonly mended = { tornBytes: 0, keptAs: undefined }
  readonly localFolder = undefined

  constructor(disk: DyingDisk) {
    this.#disk = disk
  }

  get term(): number {
    return this.#disk.term
  }

  async *lines(from: number): AsyncIterable<StoredLine[]> {
    yield this.#disk.lines.slice(this.#indexAt(from))
  }

  async seek(seq: number): Promise<number | undefined> {
    return this.#disk.lines[seq - 1]?.at
  }

  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    return positions.map(({ at }) => this.#disk.lines[this.#indexAt(at)]?.bytes ?? new Uint8Array())
  }

  async unfinishedBytes(): Promise<number> {
    return 0
  }

  async changed(): Promise<void> {}

  async loadCheckpoint(): Promise<string[]> {
    return this.#disk.checkpoint
  }

  async getBlob(): Promise<Uint8Array | undefined> {
    return undefined
  }

  append(lines: readonly SealedLine[], options: AppendOptions): AppendResult | Promise<AppendResult> {
    return this.#disk.append(lines, options)
  }

  async reclaim(): Promise<Claim> {
    throw notHere()
  }

  async putBlob(): Promise<BlobReference> {
    throw notHere()
  }

  async saveDerived(data: DerivedData): Promise<void> {
    this.#disk.keepDerived(data)
  }

  async close(): Promise<void> {}

  #indexAt(at: number): number {
    const index = this.#disk.lines.findIndex((line) => line.at >= at)
    return index === -1 ? this.#disk.lines.length : index
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

function notHere(): SessionError {
  return new SessionError('storage-failed', 'The proof needs no such thing.')
}

const encoder = new TextEncoder()
