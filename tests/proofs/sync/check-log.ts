import type { Ack } from '@tapetree/client/protocol'
import type { Violation } from './violation.ts'

export interface SentCommand {
  id: string
  op: string
  args: Record<string, unknown>
}

export interface LogEvidence {
  /** The log as it lies on the disk. */
  lines: readonly string[]
  commands: ReadonlyMap<string, SentCommand>
  /** The first answer to each, and one that says it took effect, if there was one. */
  acks: ReadonlyMap<string, Ack>
  /** The head each time when a tool began, by its call. */
  ran?: ReadonlyMap<string, readonly number[]>
  closings: readonly { from: number; to: number }[]
}

interface LogLine {
  seq: number
  type: string
  id: string
  cause?: { cmd?: string }
  [payload: string]: unknown
}

type Payload = Record<string, string | undefined>

/** What the log itself must say, whoever watched: I1, I6, I7, I8 and I13. */
export function checkLog(evidence: LogEvidence): Violation[] {
  const lines = evidence.lines.map((text) => JSON.parse(text) as LogLine)
  return [
    ...checkNumbers(lines),
    ...checkEffects(lines, evidence),
    ...checkCancels(lines, evidence),
    ...checkPermissions(lines, evidence),
    ...checkSubmissions(lines),
    ...checkRuns(lines),
  ]
}

function checkNumbers(lines: readonly LogLine[]): Violation[] {
  const wrong = lines.find(({ seq }, index) => seq !== index + 1)
  return wrong ? [{ invariant: 'I1', message: `line ${wrong.seq} is not where it should be` }] : []
}

/** Operations that leave a line with their cause. */
const leavesLine = /^(prompt|steer|follow_up|permission\.answer|branch|label|rename|queue\..*)$/

function checkEffects(lines: readonly LogLine[], { commands, acks }: LogEvidence): Violation[] {
  const effects = Map.groupBy(
    lines.filter(({ cause }) => cause?.cmd !== undefined),
    ({ cause }) => cause?.cmd as string,
  )
  const violations: Violation[] = []
  for (const [id, { op }] of commands) {
    const count = effects.get(id)?.length ?? 0
    if (count > 1) violations.push({ invariant: 'I6', message: `command ${id} (${op}) took effect ${count} times` })
    if (acks.get(id)?.ok && leavesLine.test(op) && count === 0)
      violations.push({ invariant: 'I6', message: `command ${id} (${op}) was said to be done and left no line` })
  }
  return violations
}

/** A cancel names its run: no other one ends by it. */
function checkCancels(lines: readonly LogLine[], { commands, closings }: LogEvidence): Violation[] {
  const named = new Set([...commands.values()].filter(({ op }) => op === 'cancel').map(({ args }) => args['run_id']))
  return lines.flatMap(({ type, seq, ...line }) => {
    const { run_id: runId, outcome } = (line['run_end'] ?? {}) as Payload
    if (type !== 'run_end' || outcome !== 'aborted' || named.has(runId)) return []
    if (closings.some(({ from, to }) => from < seq && seq <= to)) return []
    return [{ invariant: 'I6', message: `run ${runId} was aborted in line ${seq}, and no cancel named it` }]
  })
}

function checkPermissions(lines: readonly LogLine[], { ran, commands, acks }: LogEvidence): Violation[] {
  const violations: Violation[] = []
  const results = new Map<string, { seq: number; outcome: unknown }[]>()
  const requests = new Map<string, string>()
  for (const { type, seq, ...line } of lines) {
    if (type === 'permission_request') {
      const { call_id: callId, request_id: requestId } = line['permission_request'] as Payload
      requests.set(String(callId), String(requestId))
    }
    if (type === 'permission_result') {
      const { request_id: requestId, outcome } = line['permission_result'] as Payload
      results.set(String(requestId), [...(results.get(String(requestId)) ?? []), { seq, outcome }])
    }
    if (type === 'tool_start') {
      const { call_id: callId } = line['tool_start'] as Payload
      const requestId = requests.get(String(callId))
      const isAllowed = requestId === undefined || results.get(requestId)?.[0]?.outcome === 'allowed'
      if (!isAllowed)
        violations.push({ invariant: 'I7', message: `call ${String(callId)} began in line ${seq} unallowed` })
      const [startedAt] = ran?.get(String(callId)) ?? []
      if (startedAt !== undefined && startedAt < seq)
        violations.push({ invariant: 'I7', message: `call ${String(callId)} ran before its line ${seq}` })
    }
  }
  for (const [callId, starts] of ran ?? [])
    if (starts.length > 1) violations.push({ invariant: 'I7', message: `call ${callId} ran ${starts.length} times` })
  for (const [requestId, answers] of results) {
    if (answers.length > 1)
      violations.push({ invariant: 'I7', message: `question ${requestId} was answered ${answers.length} times` })
    const winners = [...commands.values()].filter(
      ({ id, op, args }) => op === 'permission.answer' && args['request_id'] === requestId && acks.get(id)?.ok,
    )
    if (winners.length > 1)
      violations.push({ invariant: 'I7', message: `question ${requestId} was won by ${winners.length} clients` })
  }
  return violations
}

interface Waiting {
  id: string
  delivery: unknown
  held: boolean
}

/** Each message waits until it is delivered or taken back by somebody, and the first that may go out goes out. */
function checkSubmissions(lines: readonly LogLine[]): Violation[] {
  const violations: Violation[] = []
  let waiting: Waiting[] = []
  const delivered = new Set<string>()
  let isHeld = false
  const wrong = (message: string): void => void violations.push({ invariant: 'I8', message })
  for (const { type, seq, cause, ...line } of lines) {
    if (type === 'run_end') isHeld ||= (line['run_end'] as Payload)['outcome'] !== 'completed'
    if (type === 'message') deliver((line['message'] ?? {}) as Payload, seq)
    if (type === 'submission') change(line['submission'] as Payload, seq, cause !== undefined)
  }
  return violations

  function deliver({ role, submission_id: id }: Payload, seq: number): void {
    if (role === 'user' && id === undefined) isHeld = false
    if (typeof id !== 'string') return
    const message = waiting.find((each) => each.id === id)
    if (delivered.has(id)) wrong(`message ${id} was delivered again in line ${seq}`)
    else if (!message) wrong(`message ${id} was delivered in line ${seq} and was not waiting`)
    else if (isHeld || message.held) wrong(`message ${id} was delivered in line ${seq} and was held`)
    else {
      const first = waiting.find(({ delivery, held }) => delivery === message.delivery && !held)
      if (first !== message) wrong(`message ${id} was delivered in line ${seq} before ${first?.id}`)
    }
    delivered.add(id)
    waiting = waiting.filter((each) => each.id !== id)
  }

  function change(submission: Payload, seq: number, hasCause: boolean): void {
    const { action, id, delivery, before_id: beforeId } = submission
    const message = waiting.find((each) => each.id === id)
    switch (action) {
      case 'add':
        waiting.push({ id: String(id), delivery, held: false })
        return
      case 'edit':
        if (message && delivery !== undefined) message.delivery = delivery
        return
      case 'move': {
        if (!message || beforeId === id) return
        waiting = waiting.filter((each) => each !== message)
        const at = waiting.findIndex((each) => each.id === beforeId)
        waiting.splice(at === -1 ? waiting.length : at, 0, message)
        return
      }
      case 'hold':
      case 'release':
        if (message) message.held = action === 'hold'
        else if (id === undefined) isHeld = action === 'hold'
        return
      case 'remove':
      case 'clear':
        if (!hasCause) wrong(`messages were taken out in line ${seq} by nobody`)
        waiting = waiting.filter((each) =>
          action === 'remove' ? each.id !== id : (delivery ?? each.delivery) !== each.delivery,
        )
        return
      default:
        wrong(`line ${seq} changes the queue in a way that nobody knows`)
    }
  }
}

function checkRuns(lines: readonly LogLine[]): Violation[] {
  const violations: Violation[] = []
  const ended = new Set<string | undefined>()
  const runOf = new Map<string | undefined, string | undefined>()
  for (const { type, seq, ...line } of lines) {
    const payload = (line[type] ?? {}) as Payload
    const runId = payload['run_id'] ?? runOf.get(payload['request_id'])
    if (type === 'permission_request') runOf.set(payload['request_id'], runId)
    if (type === 'run_start') ended.delete(runId)
    if (runId !== undefined && ended.has(runId))
      violations.push({
        invariant: 'I13',
        message: `line ${seq} (${type}) of run ${runId} comes after its end`,
      })
    if (type === 'run_end') ended.add(runId)
  }
  return violations
}
