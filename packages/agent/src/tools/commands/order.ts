import type { RedactionPolicy } from '@tapetree/redact'

/** The order for a supervisor. It contains secrets, so it is sent through a pipe and never stored. */
export interface Order {
  spool: string
  /** The number of the claim to take first. */
  claim: number
  /** Identifies the processes of this command. */
  mark: string
  command: string
  cwd: string
  env: Record<string, string>
  /** The command is ended after this long. */
  deadlineMs: number
  /** What to redact from its output before it is written to disk. */
  redaction: RedactionPolicy
  /** How much output is stored: the beginning and the end. */
  outputCapBytes: number
  /** The command is ended when it has printed more than this. */
  outputLimitBytes: number
  /** Time between SIGTERM and SIGKILL. */
  graceMs: number
  /** How long processes may outlive their shell. */
  lingerMs: number
}
