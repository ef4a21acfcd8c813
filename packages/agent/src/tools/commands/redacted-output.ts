import type { RedactingByteStream } from '@tapetree/redact'
import type { OutputWriter } from './spooled-output.ts'

/** After so long without output, what was put off is looked at. */
const quietMs = 50

/**
 * What a command prints, on its way to the disk: nothing gets there that has not been redacted, and all offsets count what is left. What
 * a secret may have begun with is held until that is decided, however long the command is quiet, and comes at its end at the latest.
 */
export class RedactedOutput {
  readonly #writer: OutputWriter
  readonly #stream: RedactingByteStream
  readonly #quiet: NodeJS.Timeout

  constructor(writer: OutputWriter, stream: RedactingByteStream) {
    this.#writer = writer
    this.#stream = stream
    this.#quiet = setTimeout(() => this.#writer.write(stream.catchUp()), quietMs)
  }

  write(chunk: Uint8Array): void {
    this.#writer.write(this.#stream.write(chunk))
    this.#quiet.refresh()
  }

  close(): void {
    clearTimeout(this.#quiet)
    this.#writer.write(this.#stream.end())
    this.#writer.close()
  }
}
