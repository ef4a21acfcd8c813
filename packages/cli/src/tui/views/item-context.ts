import type { Highlighter } from '../markdown/highlight.ts'
import type { Theme } from '../theme.ts'

/** What an item needs to be drawn, beside itself. */
export interface ItemContext {
  readonly theme: Theme
  /** Reasoning and the output of tools are shown whole. */
  readonly isUnfolded?: boolean
  readonly highlighter?: Highlighter
  /** The run of its calls goes on. Then a call without a result still gets one. */
  readonly isLive?: boolean
  /** What is known of a call that has no result yet. */
  readonly callNews?: (callId: string) => CallNews | undefined
  /** Of a compaction: the messages that it stands for. */
  readonly summarised?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Keeps what was drawn of a part, while the rest of its item changes. */
  readonly remember?: (part: object, draw: () => string[]) => string[]
}

export interface CallNews {
  /** What it has printed so far. */
  readonly output?: string
  readonly startedAt?: number
  /** It waits for somebody's leave, or for an answer. */
  readonly isAsked?: boolean
}
