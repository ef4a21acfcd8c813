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
    this.#saving = this.#saving.then(() => this.#write())
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
      const id = state.header?.id ?? ''
      const { inbox, totals } = state
      await this.#log.saveDerived('checkpoint', writeCheckpoint(state))
      await this.#log.saveDerived('queue', `${JSON.stringify(queueFileOf(inbox, new Date()), null, 2)}\n`)
      const metadata = { ...sessionInfoOf(state, { id }), usage: totals.usage, seq: state.seq }
      await this.#log.saveDerived('metadata', `${JSON.stringify(metadata, null, 2)}\n`)
    } catch {
      // Derived files are rebuilt from the log; the next save or open retries.
    }
  }
}

const intervalMs = 1000
