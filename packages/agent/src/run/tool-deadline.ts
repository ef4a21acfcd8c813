import { settledWithin } from '@tapetree/session/util/deadline'
import type { Clock } from '@tapetree/session/util/wait'
import type { ToolOutput } from '../tools/tool.ts'
import { resultText } from './tool-results.ts'

/** How long a stopped tool has to return what it did so far. */
const graceMs = 5000

export interface Deadline {
  deadlineMs: number
  clock: Clock
  signal: AbortSignal
  /** The result of a tool that the signal stopped. */
  stopped: () => string
}

/**
 * The output of a tool that respects its deadline and the signal; otherwise a sentence on what happened. A tool that
 * throws, hangs or ignores the signal does not hold up the run.
 */
export async function runWithDeadline(
  { deadlineMs, clock, signal, stopped }: Deadline,
  work: (signal: AbortSignal) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const overdue = new AbortController()
  const output = Promise.try(work, AbortSignal.any([signal, overdue.signal]))
  const first = await settledWithin(output, { ms: deadlineMs, clock, signal })
  if (first === 'late') overdue.abort(new Error('the tool exceeded its deadline'))
  const isGivenUp = first !== 'settled' && (await settledWithin(output, { ms: graceMs, clock })) === 'late'
  try {
    if (!isGivenUp) return await output
  } catch (error) {
    if (first === 'settled' && !signal.aborted) return { content: resultText.failed(error), isError: true }
  }
  return { content: first === 'late' ? resultText.overdue(deadlineMs) : stopped(), isError: true }
}
