import { checkpointSize, writeCheckpoint } from './checkpoint.ts'
import type { WritableLog } from './log-store.ts'
import { queueFileOf } from '../state/inbox.ts'
import { sessionInfoOf } from '../state/session-info.ts'
import type { SessionReader } from './session-reader.ts'
import { UnreadError } from '../state/tree.ts'

/**
 * Writes checkpoint, metadata and queue copy, at most once a second. Never delays an append; a failed write
 * does not fail the session.
 */
export class DerivedFiles {
  readonly #log: WritableLog
  readonly #reader: SessionReader
  #timer: unknown
  #saving: Promise<void> = Promise.resolve()
  /** A save that has not begun. It will save the newest state, so a later one need not be added to it. */
  #next: Promise<void> | undefined
  #linesSince = 0
  #savedSeq: number

  constructor(log: WritableLog, reader: SessionReader) {
    this.#log = log
    this.#reader = reader
    this.#savedSeq = reader.state.seq
  }

  schedule(lines: number): void {
    this.#linesSince += lines
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      if (this.#isWorthwhile()) void this.save()
    }, intervalMs)
    // Must not keep the process alive; closing writes the files.
    ;(this.#timer as { unref?: () => void }).unref?.()
  }

  async save(): Promise<void> {
    this.#next ??= this.#saving.then(() => {
      this.#next = undefined
      return this.#write()
    })
    this.#saving = this.#next
    await this.#saving
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer as Parameters<typeof clearTimeout>[0])
    if (this.#reader.state.seq !== this.#savedSeq) await this.save()
    await this.#saving
  }

  /** A long context makes a large checkpoint, so it is rewritten only after a quarter as many new lines. */
  #isWorthwhile(): boolean {
    try {
      return this.#linesSince * 4 >= checkpointSize(this.#reader.state)
    } catch (error) {
      if (error instanceof UnreadError) return false
      throw error
    }
  }

  async #write(): Promise<void> {
    const { state } = this.#reader
    this.#linesSince = 0
    this.#savedSeq = state.seq
    try {
      const { saved, ...checkpoint } = writeCheckpoint(state)
      // If this save fails, nobody knows which pieces were stored.
      state.savedPieces = []
      const info = sessionInfoOf(state, { id: state.header?.id ?? '' })
      await this.#log.saveDerived({
        checkpoint,
        queue: `${JSON.stringify(queueFileOf(state.inbox, new Date()), null, 2)}\n`,
        metadata: `${JSON.stringify({ ...info, usage: state.totals.usage, seq: state.seq }, null, 2)}\n`,
      })
      state.savedPieces = saved
    } catch {
      // Derived files are rebuilt from the log; the next save or open retries.
    }
  }
}

const intervalMs = 1000
