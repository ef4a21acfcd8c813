import type { RedactingByteStream } from '@tapetree/redact'
import type { OutputWriter } from './spooled-output.ts'

/** After this long without output, deferred text is examined. */
const quietMs = 50

/**
 * Redacts output on its way to disk; all offsets count redacted bytes. A possible start of a secret is held
 * back until it is decided, at the latest when the command ends.
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
