import { createContext, Script, type Context } from 'node:vm'

const call = new Script('work()')
let context: Context | undefined
/** How texts begin that took too long. */
const slow = new Set<string>()
/** How often each parser was called: until it is warm it is slow by itself. */
const calls = new Map<string, number>()

/**
 * What the work makes of a text, or undefined if it takes longer than a text of this length may. For parsers of others, whose regular
 * expressions take minutes on hostile text: a script with a timeout is the only thing that can stop them in this thread. What is stopped
 * may leave its own objects in any state. A text that begins as one that took too long is not tried again: it is the same text, which
 * has grown.
 */
export function withinTime<T>({ parser, text }: { parser: string; text: string }, work: () => T): T | undefined {
  const start = `${parser} ${text.slice(0, startLength)}`
  if (slow.has(start)) return undefined
  const count = calls.get(parser) ?? 0
  calls.set(parser, count + 1)
  const budgetMs = (count < callsUntilWarm ? coldMs : warmMs) + text.length * msPerCharacter
  // The timeout counts time on the clock. On a busy machine most of that may have gone to other processes: then it is tried again.
  for (let timeoutMs = budgetMs; timeoutMs <= budgetMs * mostPatience; timeoutMs *= 4) {
    const before = cpuMs()
    const result = stoppedAfter(timeoutMs, work)
    if (result) return result.value
    if (cpuMs() - before >= budgetMs / 2) break
  }
  if (slow.size >= maxSlow) slow.clear()
  slow.add(start)
  return undefined
}

function stoppedAfter<T>(timeoutMs: number, work: () => T): { value: T } | undefined {
  context ??= createContext({ work: undefined })
  context['work'] = work
  try {
    return { value: call.runInContext(context, { timeout: Math.ceil(timeoutMs) }) as T }
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  } finally {
    context['work'] = undefined
  }
}

/** Processor time of this thread, in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Ordinary text takes a fraction of it. */
const warmMs = 25
const msPerCharacter = 0.001
const coldMs = 500
const callsUntilWarm = 20
const mostPatience = 64
const startLength = 500
const maxSlow = 100
