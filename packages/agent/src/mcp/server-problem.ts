/** A problem of a server or a call: the message is a sentence that is safe to show to users and models. */
export class ServerProblem extends Error {
  override readonly name = 'ServerProblem'
  /** A retry would fail the same way. */
  readonly isFinal: boolean

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}

/** The server has dropped the session: the call did not start and may be retried on a new connection. */
export class SessionForgotten extends ServerProblem {}
