/** What the fake provider does with one request. Plain data, the same for every wire format. */
export type FakeStep = FakeAnswer | FakeFailure | FakeBytes | { type: 'hang' } | { type: 'cut' }

/** A streamed answer. */
export interface FakeAnswer {
  type: 'answer'
  content: FakeContent[]
  usage?: FakeUsage
  /** Default: `tool-calls` if there are calls, else `stop`. */
  finish?: FakeFinish
  /** How the stream ends. All but `complete` end it during the last content. */
  ending?: FakeEnding
  /** A real delay before each chunk. */
  paceMs?: number
}

export type FakeContent =
  | { type: 'text'; chunks: string[] }
  /** `signature` is the proof of reasoning in the format: a signature, or encrypted content. */
  | { type: 'reasoning'; chunks: string[]; signature?: string }
  /** The chunks together should be the JSON of the input, but need not be. */
  | { type: 'tool_call'; id: string; name: string; chunks: string[] }
  /** Keep-alive events without content. */
  | { type: 'keep_alive'; count: number }
  /** Stops until `release(gate)` is called, after sending everything before it. */
  | { type: 'wait'; gate: string }

export type FakeFinish = 'stop' | 'tool-calls' | 'length' | 'content-filter'

export type FakeEnding =
  | { type: 'complete' }
  /** The connection breaks. */
  | { type: 'cut' }
  /** The stream ends cleanly, but too early. */
  | { type: 'eof' }
  /** Nothing more is sent. */
  | { type: 'hang' }
  /** An error as an event of the stream; without content it is the first event. */
  | { type: 'error'; error: FakeErrorKind; message?: string }
  /** An event that is not JSON. */
  | { type: 'malformed' }

/** Tokens. `input` counts all of them, cached or not. */
export interface FakeUsage {
  input: number
  output: number
  cacheRead?: number
  cacheWrite?: number
  reasoning?: number
}

/** A request that is answered with an error. Each wire format has the status and text of its provider. */
export interface FakeFailure {
  type: 'failure'
  error: FakeErrorKind
  /** Overrides the usual status. */
  status?: number
  message?: string
  retryAfter?: { seconds: number } | { ms: number } | { date: Date }
}

/** A response that is sent exactly as given, chunk by chunk, for what the other steps cannot express. */
export interface FakeBytes {
  type: 'bytes'
  chunks: readonly Uint8Array[]
  /** Default: 200. */
  status?: number
  /** Default: `content-type: text/event-stream`. */
  headers?: Record<string, string>
  /** Default: `complete`. `cut` breaks the connection after the last chunk, `hang` leaves it open. */
  ending?: 'complete' | 'cut' | 'hang'
}

export type FakeErrorKind =
  | 'rate-limited'
  | 'server-error'
  | 'unavailable'
  | 'overloaded'
  | 'context-overflow'
  | 'auth'
  | 'quota'
  | 'invalid-request'
