import { createContext, Script, type Context } from 'node:vm'

const call = new Script('work()')
let context: Context | undefined
/** Prefixes of texts that took too long. */
const slow = new Set<string>()
/** How often each parser was called: it is slow until it is warm. */
const calls = new Map<string, number>()

/**
 * The result of the work on a text, or undefined if it exceeds the time limit for this length. For third-party parsers whose regular
 * expressions take minutes on hostile text: only a script with a timeout can stop them in this thread. Stopped work may leave its own
 * objects in any state. Does not retry a text with the same prefix as one that took too long: it is the same text, grown.
 */
export function withinTime<T>({ parser, text }: { parser: string; text: string }, work: () => T): T | undefined {
  const start = `${parser} ${text.slice(0, startLength)}`
  if (slow.has(start)) return undefined
  const count = calls.get(parser) ?? 0
  calls.set(parser, count + 1)
  const budgetMs = (count < callsUntilWarm ? coldMs : warmMs) + text.length * msPerCharacter
  // The timeout measures wall-clock time. On a busy machine other processes may have used most of it: then it retries.
  for (let timeoutMs = budgetMs; timeoutMs <= budgetMs * mostPatience; timeoutMs *= 4) {
    const before = cpuMs()
    const result = stoppedAfter(timeoutMs, work)
    if (result) return result.value
    if (cpuMs() - before >= budgetMs * 0.8) break
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

/** CPU time of this thread, in milliseconds. */
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
