/** What a reading process says while it works, one line of JSON each. */
export type ReadingReport =
  | { type: 'progress'; done: number; at: string }
  | { type: 'failure'; what: string; problems: string[] }
  /** `grownBytes`: how much more memory the process had at its worst than before. */
  | { type: 'end'; done: number; onDisk: number; slowestMs: number; grownBytes: number }

export interface HugeRequest {
  root: string
  sessionId: string
  megabytes: number
}

export interface HugeReport {
  problems: string[]
  /** CPU time of the slowest way to read it. */
  msPerMegabyte: number
  /** What plain lines of JSON cost at the same time. */
  bareMsPerMegabyte: number
  /** More memory than at the start of the process, at worst, after verifying and opening it. */
  grownBytes: number
}
