/** What a reading process says while it works, one line of JSON each. */
export type ReadingReport =
  | { type: 'progress'; done: number; at: string }
  | { type: 'failure'; what: string; problems: string[] }
  /** `grownBytes`: how much more memory the process had at its worst than before. */
  | { type: 'end'; done: number; onDisk: number; slowestMs: number; grownBytes: number }

export interface HugeReport {
  name: string
  problems: string[]
  /** CPU time of the slowest way to read it. */
  msPerMegabyte: number
  grownBytes: number
}
