import type { Clock } from '../clock.ts'
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
  { deadlineMs, clock, signal, stopped: stoppedWords }: Deadline,
  work: (signal: AbortSignal) => Promise<ToolOutput>,
): Promise<ToolOutput> {
  const overdue = new AbortController()
  const finished = new AbortController()
  const given = AbortSignal.any([signal, overdue.signal])
  const givenUp = stopAfter({ deadlineMs, clock, signal, stopped: stoppedWords }, overdue, finished.signal)
  try {
    return await Promise.race([Promise.try(work, given), givenUp])
  } catch (error) {
    if (overdue.signal.aborted) return { content: words.overdue(deadlineMs), isError: true }
    if (signal.aborted) return { content: stoppedWords(), isError: true }
    return { content: words.failed(error), isError: true }
  } finally {
    finished.abort()
    void givenUp.catch(() => undefined)
  }
}

/** Settles only where the tool does not: some time after it was told to stop. */
async function stopAfter(
  { deadlineMs, clock, signal, stopped }: Deadline,
  overdue: AbortController,
  finished: AbortSignal,
): Promise<ToolOutput> {
  const isStopped = await Promise.race([
    aborted(signal, finished),
    Number.isFinite(deadlineMs) ? clock.wait(deadlineMs, finished).then(() => false) : aborted(finished),
  ])
  finished.throwIfAborted()
  if (!isStopped) overdue.abort(new Error('the deadline of the tool has passed'))
  await clock.wait(graceMs, finished)
  return { content: isStopped ? stopped() : words.overdue(deadlineMs), isError: true }
}

/** Listens no longer than `until`: a signal made of others is kept, with all it holds, as long as somebody listens to it. */
function aborted(signal: AbortSignal, until?: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(true)
    else signal.addEventListener('abort', () => resolve(true), { once: true, ...(until && { signal: until }) })
  })
}
