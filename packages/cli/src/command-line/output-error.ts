/** What we say cannot be written. */
export class OutputError extends Error {
  override readonly name = 'OutputError'
  readonly code: string
  /** Whoever read it has gone: there is nobody to tell, and nothing is wrong. */
  readonly isUnread: boolean

  constructor(cause: Error, { isTTY }: { isTTY: boolean }) {
    super(cause.message, { cause })
    this.code = (cause as NodeJS.ErrnoException).code ?? 'unknown'
    this.isUnread = goneCodes.includes(this.code) || (this.code === 'EIO' && isTTY)
  }
}

/** A stream that was destroyed is one whose reader had gone at the write before. */
const goneCodes = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']
