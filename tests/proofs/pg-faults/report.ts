/** What a writer says, a line of JSON each, at the moment when it happens. */
export type Report =
  | { type: 'ready' }
  /** The writer owns this session now. */
  | { type: 'opened'; session: string }
  /** Before an append. With `isStale`, its term is known to be over. */
  | { type: 'tried'; session: string; id: string; isStale?: true }
  | { type: 'acknowledged'; session: string; id: string; seq: number }
  /** The append rejected: `fenced`, or a failure after which the line is not in the log. */
  | { type: 'refused'; session: string; id: string; code: string; message: string }
  /** The outcome is unknown to the caller of the port, who has given up the claim. */
  | { type: 'abandoned'; session: string; id: string }
  /** Every append has ended. */
  | { type: 'drained' }
  | { type: 'failed'; reason: string }

/** What a writer is told. */
export type Order =
  | ({ type: 'begin'; name: string } & WriterOptions)
  /** Take over the sessions of another writer, as soon as its lease has ended. */
  | { type: 'take'; sessions: readonly string[] }
  /** Begin no more appends. */
  | { type: 'drain' }

export interface WriterOptions {
  /** The same database by different ways. */
  urls: readonly string[]
  /** As for `openPostgresStore`. */
  answerMs?: number
  seed: number
  /** How many it creates. */
  sessions: number
}

/** The text of a line, from which it can be told whether the line is the one that was given. */
export function textOf(id: string): string {
  return `${id} ${'…'.repeat(1 + (id.length % 7))}`
}
