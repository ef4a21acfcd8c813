import { settledWithin } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import type { ToolOutput } from '../tools/tool.ts'
import { words } from './tool-results.ts'

/** A tool that was told to stop has this long to say how far it came. */
const graceMs = 5000

export interface Deadline {
  deadlineMs: number
  clock: Clock
  signal: AbortSignal
  /** What is said of a tool that the signal has stopped. */
  stopped: () => string
}

/**
 * The output of a tool that keeps to its deadline and to the signal, or a sentence on what became of it: a tool that throws,
 * hangs or ignores the signal does not hold up the run.
 */
export async function runWithDeadline(
  { deadlineMs, clock, signal, stopped }: Deadline,
  work: (signal: AbortSignal) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const overdue = new AbortController()
  const output = Promise.try(work, AbortSignal.any([signal, overdue.signal]))
  const first = await settledWithin(output, { ms: deadlineMs, clock, signal })
  if (first === 'late') overdue.abort(new Error('the deadline of the tool has passed'))
  const isGivenUp = first !== 'settled' && (await settledWithin(output, { ms: graceMs, clock })) === 'late'
  try {
    if (!isGivenUp) return await output
  } catch (error) {
    if (first === 'settled' && !signal.aborted) return { content: words.failed(error), isError: true }
  }
  return { content: first === 'late' ? words.overdue(deadlineMs) : stopped(), isError: true }
}
