/** What is wrong with a server, or with a call to it: its message is a sentence that is safe to show to users and models. */
export class ServerProblem extends Error {
  override readonly name = 'ServerProblem'
  /** It would be the same if it were tried again. */
  readonly isFinal: boolean

  constructor(message: string, { isFinal = false, cause }: { isFinal?: boolean; cause?: unknown } = {}) {
    super(message, { cause })
    this.isFinal = isFinal
  }
}

/** The server no longer knows us: the call did not begin and may be made again on a new connection. */
export class SessionForgotten extends ServerProblem {}
