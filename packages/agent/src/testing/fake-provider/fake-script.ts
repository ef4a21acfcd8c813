/** What the fake provider does with one request. Plain data, the same for every wire format. */
export type FakeStep = FakeAnswer | FakeFailure | FakeBytes | { type: 'hang' } | { type: 'cut' }

/** A streamed answer. */
export interface FakeAnswer {
  type: 'answer'
  content: FakeContent[]
  usage?: FakeUsage
  /** `tool-calls` if there are calls, else `stop`, if absent. */
  finish?: FakeFinish
  /** How the stream ends. All but `complete` end it in the middle of the last content. */
  ending?: FakeEnding
  /** Waits this long, in real time, before each chunk. */
  paceMs?: number
}

export type FakeContent =
  | { type: 'text'; chunks: string[] }
  /** `signature` is whatever the format has to prove reasoning by: a signature, or encrypted content. */
  | { type: 'reasoning'; chunks: string[]; signature?: string }
  /** The chunks together should be the JSON of the input, and need not be. */
  | { type: 'tool_call'; id: string; name: string; chunks: string[] }
  /** Signs of life without content. */
  | { type: 'keep_alive'; count: number }
  /** Stops until `release(gate)` is called, with what came before it sent. */
  | { type: 'wait'; gate: string }

export type FakeFinish = 'stop' | 'tool-calls' | 'length' | 'content-filter'

export type FakeEnding =
  | { type: 'complete' }
  /** The connection breaks. */
  | { type: 'cut' }
  /** The stream ends in good order, but too early. */
  | { type: 'eof' }
  /** Nothing more comes. */
  | { type: 'hang' }
  /** An error as an event of the stream; with no content it is the first event. */
  | { type: 'error'; error: FakeErrorKind; message?: string }
  /** An event that is no JSON. */
  | { type: 'malformed' }

/** Tokens. `input` counts all of it, cached or not. */
export interface FakeUsage {
  input: number
  output: number
  cacheRead?: number
  cacheWrite?: number
  reasoning?: number
}

/** A request that is answered with an error. Each wire format knows the status and the words of its provider. */
export interface FakeFailure {
  type: 'failure'
  error: FakeErrorKind
  /** In place of the usual ones. */
  status?: number
  message?: string
  retryAfter?: { seconds: number } | { ms: number } | { date: Date }
}

/** A response that is sent exactly as given, chunk by chunk: for what the other steps cannot express. */
export interface FakeBytes {
  type: 'bytes'
  chunks: readonly Uint8Array[]
  /** 200 if absent. */
  status?: number
  /** `content-type: text/event-stream` if absent. */
  headers?: Record<string, string>
  /** `complete` if absent. `cut` breaks the connection after the last chunk, `hang` leaves it open. */
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
