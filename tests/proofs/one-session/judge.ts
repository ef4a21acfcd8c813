import { lineKind, type Line } from '@tapetree/session/format'
import type { Evidence, Stop } from './evidence.ts'

/** What is wrong with a session whose history is over and whose messages have all been let go. Empty if nothing is. */
export function judge(lines: readonly Line[], evidence: Evidence): string[] {
  return [
    ...callsRunOnce(lines, evidence),
    ...callsHaveOneResult(lines),
    ...runsHaveOneEnd(lines, evidence),
    ...messagesAreSaidOnce(lines, evidence),
    ...startsAreTrue(lines, evidence),
    ...nothingIsBesideThePath(lines),
    ...interruptionsAreTrue(lines, evidence),
    ...questionsHaveOneAnswer(lines),
  ]
}

function callsRunOnce(lines: readonly Line[], { ledger, stops }: Evidence): string[] {
  const deaths = stops.filter(isDeath).length
  const problems: string[] = []
  const started = new Map<string, number>()
  for (const line of lines) if (line.type === 'tool_start') add(started, line.toolStart.callId)
  const ran = new Map<string, number>()
  for (const entry of ledger) add(ran, entry)
  for (const [entry, times] of ran) {
    const [tool, callId = ''] = entry.split(' ')
    const most = tool === 'look' ? 1 + deaths : 1
    if (times > most) problems.push(`${entry} ran ${times} times`)
    if (!started.has(callId)) problems.push(`${entry} ran without a tool_start`)
  }
  return problems
}

function callsHaveOneResult(lines: readonly Line[]): string[] {
  const calls = new Map<string, number>()
  for (const line of lines) {
    if (line.type !== 'message') continue
    for (const block of line.message.content) {
      if (block.type === 'tool_use') calls.set(block.toolUse.id, calls.get(block.toolUse.id) ?? 0)
      if (block.type === 'tool_result') add(calls, block.toolResult.toolUseId)
    }
  }
  return [...calls].flatMap(([id, results]) => (results === 1 ? [] : [`call ${id} has ${results} results`]))
}

/** One run at a time, each with one end; resumed or abandoned only if its process or its owner was gone. */
function runsHaveOneEnd(lines: readonly Line[], evidence: Evidence): string[] {
  const problems: string[] = []
  const ended = new Set<string>()
  const resumed = new Set<string>()
  /** `stopped`: the answer that was stopped. If its process then died, the run ends when another one resumes it. */
  let open: { runId: string; seq: number; stopped?: Ended } | undefined
  for (const line of lines) {
    if (line.type === 'run_start') {
      const { runId, resumes } = line.runStart
      if (open && open.runId !== runId) problems.push(`run ${runId} began while run ${open.runId} was open`)
      if (open?.runId === runId && resumes === undefined) problems.push(`run ${runId} began twice`)
      if (open?.runId === runId && !hadDeath(evidence, open.seq, line.seq))
        problems.push(`live run ${runId} was resumed`)
      if (ended.has(runId)) problems.push(`run ${runId} began after its end`)
      if (resumes !== undefined) resumed.add(runId)
      const stopped = open?.runId === runId ? open.stopped : undefined
      open = { runId, seq: line.seq, ...(stopped && { stopped }) }
    }
    if (line.type === 'message' && line.message.stopReason === 'aborted' && open && open.runId === line.message.runId) {
      open.stopped ??= { from: open.seq, seq: line.seq, isResumed: resumed.has(open.runId) }
    }
    if (line.type === 'run_end') {
      const { runId, outcome } = line.runEnd
      if (open?.runId !== runId) problems.push(`run ${runId} ended without being open`)
      const from = open?.seq ?? 0
      const end = open?.stopped ?? { from, seq: line.seq, isResumed: resumed.has(runId) }
      if (outcome === 'aborted' && !wasStopped(evidence, { runId, ...end }))
        problems.push(`run ${runId} ended as aborted, and nobody stopped it`)
      if (outcome === 'abandoned' && !hadDeath(evidence, from, line.seq))
        problems.push(`live run ${runId} was abandoned`)
      if (outcome === 'failed') problems.push(`run ${runId} failed: ${line.runEnd.reason ?? ''}`)
      ended.add(runId)
      open = undefined
    }
  }
  if (open) problems.push(`run ${open.runId} has no end`)
  return problems
}

function messagesAreSaidOnce(lines: readonly Line[], { messages }: Evidence): string[] {
  const said = new Map<string, number>()
  const waiting = new Set<string>()
  for (const line of lines) {
    if (line.type === 'submission' && line.submission.action === 'add') waiting.add(nameOf(line.submission.message))
    if (line.type !== 'message' || line.message.role !== 'user') continue
    for (const block of line.message.content) if (block.type === 'text') add(said, nameOf(block.text.content))
  }
  return messages.flatMap(({ text, told, owner }) => {
    const times = said.get(nameOf(text)) ?? 0
    const [least, most] =
      told === 'busy' ? [0, 0] : told === 'unknown' ? [waiting.has(nameOf(text)) ? 1 : 0, 1] : [1, 1]
    const isRight = times >= least && times <= most
    return isRight ? [] : [`message ${nameOf(text)} of owner ${owner} was ${told}, and was said ${times} times`]
  })
}

/** Who is told that a run has started has started one, and nobody else has started the same. */
function startsAreTrue(lines: readonly Line[], { messages }: Evidence): string[] {
  const begun = new Set(lines.flatMap((line) => (line.type === 'run_start' ? [line.runStart.runId] : [])))
  const started = messages.flatMap(({ told, runId }) => (told === 'started' ? [runId ?? ''] : []))
  return [
    ...started.filter((runId) => !begun.has(runId)).map((runId) => `run ${runId} was said to start and is not there`),
    ...started.filter((runId, index) => started.indexOf(runId) !== index).map((id) => `run ${id} was started twice`),
  ]
}

/** Every entry follows the leaf: what does not is a branch that nobody asked for. */
function nothingIsBesideThePath(lines: readonly Line[]): string[] {
  const problems: string[] = []
  let leaf: string | null = null
  for (const line of lines) {
    if (line.type === 'leaf') leaf = line.leaf.targetId
    if (!('parentId' in line) || lineKind(line.type) === 'note') continue
    // It goes back by itself.
    if (line.type !== 'branch_summary' && line.parentId !== leaf) {
      problems.push(`line ${line.seq} (${line.type}) does not follow the leaf`)
    }
    leaf = line.id
  }
  return problems
}

function interruptionsAreTrue(lines: readonly Line[], evidence: Evidence): string[] {
  const starts = new Map<string, number>()
  const problems: string[] = []
  for (const line of lines) {
    if (line.type === 'tool_start') starts.set(line.toolStart.callId, line.seq)
    if (line.type === 'attempt' && line.attempt.error?.kind === 'interrupted' && !hadDeath(evidence, 0, line.seq))
      problems.push(`line ${line.seq} says that a process ended, and none did`)
    if (line.type !== 'message') continue
    for (const block of line.message.content) {
      if (block.type !== 'tool_result' || !JSON.stringify(block.toolResult.content).includes('The process ended'))
        continue
      const { toolUseId } = block.toolResult
      const from = starts.get(toolUseId) ?? 0
      if (!hadDeath(evidence, from, line.seq)) problems.push(`call ${toolUseId} is said to be interrupted by a death`)
    }
  }
  return problems
}

function questionsHaveOneAnswer(lines: readonly Line[]): string[] {
  const answers = new Map<string, number>()
  for (const line of lines) if (line.type === 'permission_result') add(answers, line.permissionResult.requestId)
  return [...answers].flatMap(([id, times]) => (times === 1 ? [] : [`question ${id} has ${times} answers`]))
}

function isDeath({ type }: Stop): boolean {
  return type === 'kill' || type === 'suspend'
}

function hadDeath({ stops }: Evidence, from: number, to: number): boolean {
  return stops.some((stop) => isDeath(stop) && stop.from < to && stop.to >= from)
}

/** Where a run was stopped, and since when the process that had it then worked on it. */
interface Ended {
  from: number
  seq: number
  isResumed: boolean
}

/** By an abort, or because the owner that started it was closed: the run ended while that was under way. */
function wasStopped(
  { stops, messages }: Evidence,
  { runId, from: began, seq, isResumed }: Ended & { runId: string },
): boolean {
  const started = messages.find((message) => message.runId === runId && message.told === 'started')
  // Whoever resumed it is its owner.
  const starter = isResumed ? undefined : started?.owner
  return stops.some(({ type, owner, from, to }) => {
    if (from >= seq) return false
    // Who asks another process to abort has its answer before the end is written.
    if (type === 'abort') return to >= began
    return to >= seq && type === 'close' && (starter === undefined || starter === owner)
  })
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Messages begin with a name of their own. */
export function nameOf(text: string): string {
  return text.split(' ')[0] ?? ''
}
