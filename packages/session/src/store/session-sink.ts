import type { DiskLine } from '../line/line.ts'
import type { WritableLog } from '../log/log-store.ts'
import type { BlobReference } from '../line/message.ts'
import type { SessionReader } from '../log/session-reader.ts'
import type { SessionWriter } from '../log/session-writer.ts'

/** The receiving end of a copy or an import: lines go in by the batch, not one sync each. */
export class SessionSink {
  readonly #writer: SessionWriter
  readonly #log: WritableLog
  readonly #reader: SessionReader
  #underWay: Promise<unknown>[] = []

  constructor(parts: { writer: SessionWriter; log: WritableLog; reader: SessionReader }) {
    this.#writer = parts.writer
    this.#log = parts.log
    this.#reader = parts.reader
  }

  async putBlob(bytes: Uint8Array): Promise<BlobReference> {
    return this.#log.putBlob(bytes)
  }

  async append(line: DiskLine): Promise<void> {
    const appended = this.#writer.appendLine(line)
    // Whether it failed is asked later; until then nobody listens.
    appended.catch(noop)
    this.#underWay.push(appended)
    if (this.#underWay.length >= maxUnderWay) await this.#settle()
  }

  /** Sets the leaf where it is not the last entry, and closes the new session. */
  async finish(leafId: string | null): Promise<void> {
    await this.#settle()
    if ((this.#reader.state.leaf?.id ?? null) !== leafId) {
      await this.#writer.append({ type: 'leaf', leaf: { targetId: leafId } })
    }
    await this.close()
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#underWay)
    await this.#writer.close()
    await this.#log.close()
  }

  async #settle(): Promise<void> {
    const all = this.#underWay
    this.#underWay = []
    await Promise.all(all)
  }
}

const maxUnderWay = 256

function noop(): void {}
