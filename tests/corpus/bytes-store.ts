import type { Place, Scope, SearchHit, SessionPage } from '@tapetree/session'
import type { Position } from '@tapetree/session/format'
import type { Claim, LogStore, ReadableLog, StoredLine } from '@tapetree/session/log-store'

/** A store of one session that is nothing but some bytes, so that thousands of broken logs can be read in a second. */
export class BytesStore implements LogStore {
  bytes: Uint8Array = new Uint8Array()
  checkpoint: string[] = []

  async open(): Promise<ReadableLog> {
    return new BytesLog(this.bytes, this.checkpoint)
  }

  async create(): Promise<void> {
    throw new Error('A store of bytes is only read.')
  }

  async discard(): Promise<void> {
    throw new Error('A store of bytes is only read.')
  }

  async claim(): Promise<Claim> {
    return { type: 'owned', owner: { reason: 'A store of bytes is only read.' } }
  }

  async list(): Promise<SessionPage> {
    return { sessions: [] }
  }

  async search(): Promise<SearchHit[]> {
    return []
  }

  async placeOf(_scope: Scope, _sessionId: string): Promise<Place | undefined> {
    return 'active'
  }

  async storedBytes(): Promise<number> {
    return this.bytes.length
  }

  async move(): Promise<void> {
    throw new Error('A store of bytes is only read.')
  }

  async erase(): Promise<void> {
    throw new Error('A store of bytes is only read.')
  }

  async close(): Promise<void> {}
}

export class BytesLog implements ReadableLog {
  readonly #bytes: Uint8Array
  readonly #checkpoint: string[]
  readonly localFolder = undefined

  constructor(bytes: Uint8Array, checkpoint: string[] = []) {
    this.#bytes = bytes
    this.#checkpoint = checkpoint
  }

  async *lines(from: number): AsyncIterable<StoredLine[]> {
    const batch: StoredLine[] = []
    let at = from
    for (let end = this.#bytes.indexOf(0x0a, at); end !== -1; end = this.#bytes.indexOf(0x0a, at)) {
      batch.push({ at, size: end - at, next: end + 1, bytes: this.#bytes.subarray(at, end) })
      at = end + 1
    }
    yield batch
  }

  /** The start is at or before any line. */
  async seek(): Promise<number | undefined> {
    return 0
  }

  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    return positions.map(({ at, size }) => this.#bytes.subarray(at, at + size))
  }

  async unfinishedBytes(): Promise<number> {
    return this.#bytes.length - (this.#bytes.lastIndexOf(0x0a) + 1)
  }

  async changed(): Promise<void> {}

  async loadCheckpoint(): Promise<string[]> {
    return this.#checkpoint
  }

  async getBlob(): Promise<Uint8Array | undefined> {
    return undefined
  }

  async close(): Promise<void> {}
}
