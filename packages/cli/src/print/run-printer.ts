import type { Transcript } from '@tapetree/session'
import type { RunResult } from './run-result.ts'

/** What of a run goes to stdout, and how. */
export interface RunPrinter {
  /** Prints what is new since it was last called. */
  print(transcript: Transcript): Promise<void>
  /** A prompt has its answer, or will not get one. */
  answered(result: RunResult): Promise<void>
  /** Nothing more comes. */
  end(): Promise<void>
}
