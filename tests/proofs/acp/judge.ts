import type { Violation } from '../sync/violation.ts'
import { tokens, words, type Deed } from './steps.ts'

export interface ForeignEvidence {
  /** The log as it lies on the disk. */
  lines: readonly string[]
  /** What the agent wrote down, in order. */
  deeds: readonly Deed[]
  /** How often the server was ended, and how often the agent was killed from outside. */
  restarts: number
  kills: number
}

export interface LogLine {
  seq: number
  type: string
  id: string
  parentId: string | null
  text: string
  payload: Payload
}

type Payload = Record<string, unknown>

export function logLines(texts: readonly string[]): LogLine[] {
  return texts.map((text) => {
    const line = JSON.parse(text) as Payload & { seq: number; type: string; id: string; parent_id?: string | null }
    const { seq, type, id, parent_id: parentId = null } = line
    return { seq, type, id, parentId, text, payload: (line[type] ?? {}) as Payload }
  })
}

/** What must hold between the log of a session and what its agent did, when all is at rest. */
export function judgeForeign(evidence: ForeignEvidence): Violation[] {
  const lines = logLines(evidence.lines)
  return [
    ...saidOnceAndInOrder(lines, evidence),
    ...saidWholly(lines, evidence),
    ...toldWhatIsDurable(lines, evidence),
    ...toldEverything(lines, evidence),
    ...allowedBeforeDone(lines, evidence),
    ...callsHaveOneResult(lines),
    ...runsHaveOneEnd(lines),
    ...outcomesAreTrue(lines, evidence),
    ...endedForAReason(evidence),
  ]
}

/** I5: what the agent says is in the log at most once and in its order, also if it repeats its history; late updates are not. */
function saidOnceAndInOrder(lines: readonly LogLine[], { deeds }: ForeignEvidence): Violation[] {
  const seen = new Set<string>()
  const last = new Map<string, number>()
  const astray = new Set(saidOf(deeds, 'astray').map(({ token }) => token))
  const soon = new Set(saidOf(deeds, 'soon').map(({ token }) => token))
  const known = new Set(deeds.flatMap((deed) => (deed.type === 'said' ? [deed.token] : [])))
  const wrong: string[] = []
  for (const { seq, token } of tokensIn(lines)) {
    const [, agent = '', number = '0'] = /<(.*)\.(\d+)>/.exec(token) ?? []
    if (seen.has(token)) wrong.push(`${token} is in the log again in line ${seq}`)
    else if (!known.has(token)) wrong.push(`${token} is in line ${seq}, and nobody said it`)
    else if (astray.has(token)) wrong.push(`${token} is in line ${seq}, and was late or about something else`)
    else if (!soon.has(token) && Number(number) < (last.get(agent) ?? 0))
      wrong.push(`${token} is in line ${seq}, after what was said later`)
    seen.add(token)
    if (!soon.has(token)) last.set(agent, Math.max(Number(number), last.get(agent) ?? 0))
  }
  return wrong.map((message) => ({ invariant: 'I5', message }))
}

/** I4: nothing is missing of a turn that ended, or in which the agent died by itself, if its server lived on and nobody else killed it. */
function saidWholly(lines: readonly LogLine[], { deeds, restarts, kills }: ForeignEvidence): Violation[] {
  const logged = new Set(tokensIn(lines).map(({ token }) => token))
  const fatal = new Set(deeds.flatMap((deed) => (deed.type === 'fatal' ? [deed.agent] : [])))
  const isWhole = (deed: Deed, index: number): boolean => {
    const { type, agent } = deed
    if (restarts > 0) return false
    if (type === 'fatal') return deed.why === 'die' && kills === 0 && !floods(deeds, agent)
    if (type !== 'end') return false
    const wentOn = deeds.slice(index).some((later) => later.type === 'prompt' && later.agent === agent)
    return (kills === 0 && !fatal.has(agent)) || (wentOn && !floods(deeds, agent))
  }
  return deeds.flatMap((deed, index) => {
    if (!isWhole(deed, index)) return []
    const begun = deeds.slice(0, index).findLast((each) => each.type === 'prompt' && each.agent === deed.agent)
    const turn = deed.type === 'end' ? deed.turn : begun?.type === 'prompt' ? begun.turn : undefined
    const missing = saidOf(deeds, 'told').filter((each) => each.turn === turn && !logged.has(each.token))
    return missing.map(({ token }) => ({ invariant: 'I4', message: `${token} of turn ${turn} is not in the log` }))
  })
}

function floods(deeds: readonly Deed[], agent: string): boolean {
  return deeds.some((deed) => deed.type === 'fatal' && deed.agent === agent && deed.why === 'flood')
}

/** I2 and I8: the agent is told a message only if it is in the log, and not while it works on another one. */
function toldWhatIsDurable(lines: readonly LogLine[], { deeds }: ForeignEvidence): Violation[] {
  const saidAt = new Map<string, number>()
  for (const { seq, payload, type } of lines) {
    if (type !== 'message' || payload['role'] !== 'user') continue
    for (const word of JSON.stringify(payload['content']).match(words) ?? [])
      if (!saidAt.has(word)) saidAt.set(word, seq)
  }
  return deeds.flatMap((deed): Violation[] => {
    if (deed.type !== 'prompt') return []
    const early = deed.words.filter((word) => (saidAt.get(word) ?? Infinity) > deed.lines)
    return [
      ...early.map((word) => ({ invariant: 'I2', message: `the agent was told ${word} before it was in the log` })),
      ...(deed.overlaps
        ? [{ invariant: 'I13', message: `${deed.turn} began during another turn of its session` }]
        : []),
    ]
  })
}

/** I8: a message of a run that completed reached the agent. */
function toldEverything(lines: readonly LogLine[], { deeds }: ForeignEvidence): Violation[] {
  const told = new Set(deeds.flatMap((deed) => (deed.type === 'prompt' ? deed.words : [])))
  const violations: Violation[] = []
  let delivered: string[] = []
  for (const { type, payload, seq } of lines) {
    if (type === 'message' && payload['role'] === 'user')
      delivered.push(...(JSON.stringify(payload['content']).match(words) ?? []))
    if (type !== 'run_end') continue
    for (const word of payload['outcome'] === 'completed' ? delivered : [])
      if (!told.has(word))
        violations.push({
          invariant: 'I8',
          message: `${word} was delivered, its run completed in line ${seq}, and the agent was not told`,
        })
    delivered = []
  }
  return violations
}

/** I7: the agent is told yes only after the answer of a user and the start of the call are in the log. */
function allowedBeforeDone(lines: readonly LogLine[], { deeds }: ForeignEvidence): Violation[] {
  const callOf = new Map<string, string[]>()
  for (const { id, acp } of usesIn(lines)) callOf.set(acp, [...(callOf.get(acp) ?? []), id])
  const requested = new Map<string, { callId: string; tool: string }>()
  const allowedAt = new Map<string, number>()
  const startedAt = new Map<string, number>()
  const allowedTools = new Map<string, number>()
  for (const { type, payload, seq } of lines) {
    if (type === 'permission_request')
      requested.set(String(payload['request_id']), {
        callId: String(payload['call_id']),
        tool: String(payload['tool']),
      })
    if (type === 'tool_start') startedAt.set(String(payload['call_id']), seq)
    if (type !== 'permission_result' || payload['outcome'] !== 'allowed') continue
    const { callId = '', tool = '' } = requested.get(String(payload['request_id'])) ?? {}
    allowedAt.set(callId, seq)
    allowedTools.set(tool, (allowedTools.get(tool) ?? 0) + 1)
  }
  const violations = deeds.flatMap((deed): Violation[] => {
    if (deed.type !== 'answer' || deed.outcome === 'no' || deed.outcome === 'cancelled' || deed.outcome === 'error')
      return []
    const calls = callOf.get(deed.call) ?? []
    const isIn = (at: Map<string, number>): boolean => calls.some((id) => (at.get(id) ?? Infinity) <= deed.lines)
    if (deed.outcome !== 'yes') return [{ invariant: 'I7', message: `${deed.call} was answered ${deed.outcome}` }]
    return [
      ...(isIn(allowedAt)
        ? []
        : [{ invariant: 'I7', message: `${deed.call} was allowed to the agent, and not by a user` }]),
      ...(isIn(startedAt)
        ? []
        : [{ invariant: 'I7', message: `${deed.call} was allowed to the agent before it had started` }]),
    ]
  })
  for (const [what, tool] of [
    ['write', 'write'],
    ['run', 'bash'],
  ] as const) {
    const done = deeds.filter((deed) => deed.type === 'effect' && deed.what === what).length
    const allowed = allowedTools.get(tool) ?? 0
    if (done > allowed)
      violations.push({
        invariant: 'I7',
        message: `the agent used ${tool} ${done} times, and was allowed ${allowed} times`,
      })
  }
  return violations
}

/** I4: at rest each call has a result, and on each branch at most one. */
export function callsHaveOneResult(lines: readonly LogLine[]): Violation[] {
  const parents = new Map(lines.map(({ id, parentId }) => [id, parentId]))
  const results = new Map<string, string[]>(usesIn(lines).map(({ id }) => [id, []]))
  const wrong: string[] = []
  for (const { id, parentId, type, payload } of lines) {
    if (type !== 'message') continue
    for (const { tool_result: result } of blocksOf(payload)) {
      if (result === undefined) continue
      const callId = String((result as Payload)['tool_use_id'])
      const earlier = results.get(callId)
      if (!earlier) wrong.push(`call ${callId} has a result, and nobody called`)
      for (let above = parentId; above !== null; above = parents.get(above) ?? null)
        if (earlier?.includes(above)) wrong.push(`call ${callId} has 2 results on one branch`)
      earlier?.push(id)
    }
  }
  for (const [callId, found] of results) if (found.length === 0) wrong.push(`call ${callId} has no result`)
  return wrong.map((message) => ({ invariant: 'I4', message }))
}

/** I13: one run at a time, and each has one end. */
export function runsHaveOneEnd(lines: readonly LogLine[]): Violation[] {
  const violations: Violation[] = []
  const wrong = (message: string): void => void violations.push({ invariant: 'I13', message })
  let open: string | undefined
  const ended = new Set<string>()
  for (const { type, payload, seq } of lines) {
    const runId = String(payload['run_id'])
    if (type === 'run_start') {
      if (open !== undefined && open !== runId) wrong(`run ${runId} began in line ${seq} while ${open} was open`)
      if (ended.has(runId)) wrong(`run ${runId} began again in line ${seq}`)
      open = runId
    }
    if (type !== 'run_end') continue
    if (open !== runId) wrong(`run ${runId} ended in line ${seq} and was not open`)
    ended.add(runId)
    open = undefined
  }
  if (open !== undefined) wrong(`run ${open} has no end`)
  return violations
}

/** I4: "outcome unknown" is said only of an agent that was gone. */
function outcomesAreTrue(lines: readonly LogLine[], { deeds, restarts, kills }: ForeignEvidence): Violation[] {
  if (restarts > 0 || kills > 0 || deeds.some(({ type }) => type === 'fatal')) return []
  const unknown = lines.filter(({ text }) => text.includes('Outcome unknown: the agent ended while'))
  return unknown.map(({ seq }) => ({
    invariant: 'I4',
    message: `line ${seq} says that the agent ended, and it did not`,
  }))
}

/** I10: an agent that listens is not ended: only one that was told to stop, died, or had lost its server. */
function endedForAReason({ deeds, restarts, kills }: ForeignEvidence): Violation[] {
  const agents = [...new Set(deeds.map(({ agent }) => agent))]
  const without = agents.slice(0, -1).filter((agent) => {
    const own = deeds.filter((deed) => deed.agent === agent)
    const lastTurn = own.slice(own.findLastIndex(({ type }) => type === 'prompt'))
    return !own.some(({ type }) => type === 'fatal') && !lastTurn.some(({ type }) => type === 'cancel')
  })
  if (without.length <= restarts + kills) return []
  return [{ invariant: 'I10', message: `agents were ended without a reason: ${without.join(', ')}` }]
}

function saidOf(deeds: readonly Deed[], as: 'told' | 'astray' | 'soon'): Extract<Deed, { type: 'said' }>[] {
  return deeds.flatMap((deed) => (deed.type === 'said' && deed.as === as ? [deed] : []))
}

/** In what the agent said: its messages, the results of its calls, and what was kept of answers that were cut off. */
function tokensIn(lines: readonly LogLine[]): { seq: number; token: string }[] {
  return lines.flatMap(({ seq, type, payload, text }) => {
    const isSaid = type === 'attempt' || (type === 'message' && payload['role'] !== 'user')
    return isSaid ? (text.match(tokens) ?? []).map((token) => ({ seq, token })) : []
  })
}

function blocksOf({ content }: Payload): Payload[] {
  return Array.isArray(content) ? (content as Payload[]) : []
}

/** Calls of the agent, with the ids that it gave them. */
function usesIn(lines: readonly LogLine[]): { id: string; acp: string }[] {
  return lines.flatMap(({ type, payload }) => {
    if (type !== 'message') return []
    return blocksOf(payload).flatMap(({ tool_use: use }) => {
      const { id, provider_metadata: metadata } = (use ?? {}) as { id?: string; provider_metadata?: Payload }
      const { toolCallId = '' } = (metadata?.['acp'] ?? {}) as { toolCallId?: string }
      return id === undefined ? [] : [{ id, acp: toolCallId }]
    })
  })
}
