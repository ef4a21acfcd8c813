import type { SteerPolicy } from '../../../packages/agent/src/run/run-settings.ts'
import type { ToolName } from './driven-tools.ts'

/** What is fixed before the first action. */
export interface Setup {
  policy: SteerPolicy
  /** What the model asks for when it asks for something. */
  calls: readonly ToolName[]
  /** The first action finds the calls of the first answer open, or the first answer still to come. */
  begins: 'with-calls' | 'before-the-answer'
  /** Every call needs the user's leave. */
  isAsking?: boolean
  /** A line is kept only when that is the next action. */
  isDiskSlow?: boolean
  /** Tools do not hear when they are told to stop. */
  isDeaf?: boolean
  /** Tools are given up after ten minutes. */
  hasDeadline?: boolean
  /** Opening begins at the last checkpoint. */
  keepsCheckpoint?: boolean
  /** A summary may be made while the run goes on. */
  hasBackground?: boolean
  /** What the model does from the last action on: it comes to its end, or fails again and again. */
  tail?: 'end' | 'error' | 'overflow'
}

/** A setup and what happens in it, one action after the other; an action that cannot happen is passed over. */
export interface Case {
  setup: Setup
  actions: readonly string[]
}
