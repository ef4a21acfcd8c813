import type { CallNews, TranscriptRow } from '@tapetree/session/screen'
import type { Highlighter } from '../markdown/highlight.ts'
import type { Theme } from '../theme.ts'

/** What an item needs to be drawn. */
export interface ItemContext {
  readonly theme: Theme
  /** Shows reasoning and tool output in full. */
  readonly isUnfolded?: boolean
  readonly highlighter?: Highlighter
  /** The run of its calls is active, so a call without a result still gets one. */
  readonly isLive?: boolean
  /** What is known about a call without a result. */
  readonly callNews?: (callId: string) => CallNews | undefined
  /** The rows that begin in this item. Reads of later answers may belong to its last row, and its first reads to a row of an earlier one. */
  readonly rows?: readonly TranscriptRow[]
  /** What the subagent of a call does. */
  readonly taskNews?: (description: string) => TaskNews | undefined
  /** The state of a background job. */
  readonly jobNews?: (jobId: string) => JobNews | undefined
  /** For the last answer of a run: what the run did. */
  readonly worked?: WorkedRun
  /** For a compaction: how many messages it replaces. */
  readonly summarized?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Caches the rendered part while the rest of its item changes. */
  readonly remember?: (part: object, draw: () => string[]) => string[]
}

/** The state of a subagent. */
export interface TaskNews {
  /** What it did last. Not yet harmless. */
  text: string
  /** In US dollars. */
  cost: number
  messageCount: number
  /** Undefined until its log is read. */
  tokens?: number
}

/** The state of a background job. */
export interface JobNews {
  /** `exit code 1`, `stopped`; `running` while it runs. */
  state: string
  isRunning: boolean
  /** Its newest output, not yet harmless. Undefined if it cannot be read: then the call says what it knew. */
  text: string | undefined
  /** Whether older output was left out. */
  isCut?: boolean
}

/** What a run did, for the line at its end. */
export interface WorkedRun {
  ms: number
  files: number
  added: number
  removed: number
  /** In US dollars. */
  cost: number
}
