import type { RedactionPolicy } from '@tapetree/redact'

/** What a supervisor is told to do. It holds secrets: it goes through a pipe and is written nowhere. */
export interface Order {
  spool: string
  /** The number of the claim it has to take first. */
  claim: number
  /** Tells the processes of this command from all others. */
  mark: string
  command: string
  cwd: string
  env: Record<string, string>
  /** It is ended after this long. */
  deadlineMs: number
  /** What is taken out of its output before any of it is on the disk. */
  redaction: RedactionPolicy
  /** This much of its output is kept: the beginning and the end. */
  outputCapBytes: number
  /** It is ended when it has printed more than this. */
  outputLimitBytes: number
  /** Between asking a process to end and killing it. */
  graceMs: number
  /** How long processes may outlive their shell. */
  lingerMs: number
}
