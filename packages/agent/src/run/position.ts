import type { Session, ToolUse, Usage } from '@tapetree/session'
import { fromDisk, type Entry, type DiskLine, type Line, type ToolStartRecord } from '@tapetree/session/format'
import { foreignApi } from './foreign-agent.ts'
import { nothingSpent, tokensOf, type Spent } from './limits.ts'

/** The position of a run: the calls of the last answer that have no result yet. */
export interface Position {
  openCalls: readonly ToolUse[]
  /** The last message is an answer of the model without calls. */
  isSettled: boolean
}

export interface PathPosition extends Position {
  /** The answer whose calls are open, or the last message. */
  entry: Extract<Entry, { type: 'message' }> | undefined
  /** The user stopped the last answer. Its calls must not run, even if they are complete. */
  isStopped: boolean
}

/**
 * The position of the path to the leaf: the calls of the last answer without a result, and whether the model is next. Reads
 * the entries at the end of the path alone if the last answer is among them, however long the path is. Without `runId`, it is
 * the position of the open run.
 */
export async function positionOf(session: Session, runId = session.openRun?.runId): Promise<PathPosition> {
  const quick = new Backwards(runId)
  let next = session.leafId
  for (let read = 0; next !== null && read < maxReadAlone; read++) {
    const entry = await session.getEntry(next)
    // The path goes on elsewhere.
    if (entry.type === 'compaction') break
    const found = quick.take(entry)
    if (found) return found
    next = entry.parentId
  }
  const whole = new Backwards(runId)
  for (const entry of (await session.getContextPath()).toReversed()) {
    const found = whole.take(entry)
    if (found) return found
  }
  return whole.end
}

/** The last answer has few results, unless the model made many calls at once. */
const maxReadAlone = 4

/** Finds the position in the entries of a path, from its end on. */
class Backwards {
  readonly #runId: string | undefined
  readonly #answered = new Set<string>()
  #hasSpoken = false
  #hasUserSpoken = false
  #newest: PathPosition['entry']
  #foreign: PathPosition | undefined

  constructor(runId: string | undefined) {
    this.#runId = runId
  }

  /** The position if this entry is the last answer. */
  take(entry: Entry): PathPosition | undefined {
    if (entry.type !== 'message') return undefined
    this.#newest ??= entry
    const { role, content } = entry.message
    for (const block of content) if (block.type === 'tool_result') this.#answered.add(block.toolResult.toolUseId)
    if (role === 'tool') return undefined
    const isOfForeign = role === 'assistant' && entry.message.api === foreignApi
    // The user may run commands during a run: they do not end the answers of the agent.
    if (this.#foreign && !isOfForeign) return role === 'user' || role === 'assistant' ? this.#foreign : undefined
    if (role !== 'assistant') {
      this.#hasSpoken = true
      this.#hasUserSpoken ||= role === 'user'
      return undefined
    }
    const unanswered = content.flatMap((block): ToolUse[] =>
      block.type === 'tool_use' && !this.#answered.has(block.toolUse.id) ? [block.toolUse] : [],
    )
    if (isOfForeign) return this.#takeForeign(entry, unanswered)
    const isStopped = !this.#hasSpoken && entry.message.stopReason === 'aborted'
    // The user went back to this answer, or copied it: its calls ran on another branch or in another session.
    const isElsewhere = this.#hasUserSpoken || entry.message.runId !== this.#runId
    const openCalls = isElsewhere ? [] : unanswered
    if (openCalls.length > 0) return { openCalls, isSettled: false, entry, isStopped }
    const isLastWord = !this.#hasSpoken && this.#answered.size === 0 && unanswered.length === 0
    return { openCalls, isSettled: isLastWord, entry: this.#newest, isStopped }
  }

  /** A foreign agent goes on while its calls run: calls of earlier answers may be open, too. */
  #takeForeign(entry: NonNullable<PathPosition['entry']>, openCalls: readonly ToolUse[]): undefined {
    const isStopped = !this.#hasSpoken && entry.message.stopReason === 'aborted'
    const isSettled = !this.#hasSpoken && this.#answered.size === 0
    const later = this.#foreign ?? { openCalls: [], isSettled, entry: this.#newest, isStopped }
    const all = [...openCalls, ...later.openCalls]
    this.#foreign =
      all.length === 0
        ? later
        : { ...later, openCalls: all, isSettled: false, entry: later.openCalls.length > 0 ? later.entry : entry }
  }

  /** The position if there is no answer. */
  get end(): PathPosition {
    if (this.#foreign) return this.#foreign
    return { openCalls: [], isSettled: this.#newest === undefined, entry: this.#newest, isStopped: false }
  }
}

type ToolStart = ToolStartRecord['toolStart']

/** What the log says about the open run since its newest start, or since the answer whose calls are open. */
export interface OpenRunFacts {
  /** Of the calls of the last answer; of a foreign agent, of all calls. */
  starts: Map<string, ToolStart>
  /** Items that are in the log, as an entry or as an attempt: their drafts are stale. */
  ended: Set<string>
  hasRunSince: boolean
  spent: Spent
  /** When the newest process took over the run, and how long the processes before it worked on it. */
  startedAt: number | undefined
  wallMsBefore: number
}

export async function factsOf(session: Session, { entry }: PathPosition): Promise<OpenRunFacts> {
  const facts: OpenRunFacts = {
    starts: new Map(),
    ended: new Set(),
    hasRunSince: false,
    spent: { ...nothingSpent },
    startedAt: undefined,
    wallMsBefore: 0,
  }
  const entrySeq = entry?.seq ?? 0
  const after = Math.min(entrySeq - 1, (session.openRun?.seq ?? Infinity) - 1)
  for await (const stored of session.lines({ after: Math.max(0, after) })) {
    if (stored.type !== 'line') continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    takeFact(facts, line)
    // It worked at least until here. The time between processes does not count.
    if (facts.startedAt !== undefined) facts.spent.wallMs = facts.wallMsBefore + sinceMs(line, facts.startedAt)
  }
  return facts
}

/** Never negative; 0 if a timestamp is invalid. */
function sinceMs({ timestamp }: Line, startedAt: number): number {
  return Math.max(0, Date.parse(timestamp) - startedAt) || 0
}

function takeFact(facts: OpenRunFacts, line: Line): void {
  switch (line.type) {
    case 'tool_start':
      facts.starts.set(line.toolStart.callId, line.toolStart)
      facts.spent.toolCalls++
      return
    case 'attempt':
      facts.ended.add(line.attempt.item)
      return
    case 'message':
      facts.ended.add(line.id)
      if (line.message.role === 'assistant') {
        facts.spent.turns++
        // The calls of the answer before have their results, and some models use their ids again.
        if (line.message.api !== foreignApi) facts.starts.clear()
      }
      if (line.message.usage) addUsage(facts.spent, line.message.usage)
      return
    case 'usage':
      addUsage(facts.spent, line.usage.tokens)
      return
    case 'run_start':
      facts.hasRunSince = true
      facts.startedAt = Date.parse(line.timestamp)
      facts.spent = { ...nothingSpent, ...line.runStart.spent }
      facts.wallMsBefore = facts.spent.wallMs
      return
    case 'run_end':
      facts.hasRunSince = true
      return
    default:
      return
  }
}

function addUsage(spent: Spent, usage: Usage): void {
  spent.tokens += tokensOf(usage)
  spent.cost += usage.cost ?? 0
}
