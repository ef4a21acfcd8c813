import type { CallNews } from '@tapetree/session/screen'
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
  /** For a compaction: how many messages it replaces. */
  readonly summarized?: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Caches the rendered part while the rest of its item changes. */
  readonly remember?: (part: object, draw: () => string[]) => string[]
}
