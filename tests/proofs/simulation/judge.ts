import type { Line } from '@tapetree/session/format'
import type { SentMessage } from './clients.ts'
import { name, type Referee, type SeenSession } from './referee.ts'

/** What is wrong with sessions that have come to their end. Empty if nothing is. */
export function judge(
  sessions: readonly SeenSession[],
  ledger: Referee['ledger'],
  messages: readonly SentMessage[],
): string[] {
  const ran = Map.groupBy(ledger, ({ sessionId }) => sessionId)
  const sent = Map.groupBy(messages, ({ sessionId }) => sessionId)
  return sessions.flatMap((session) => [
    ...callsRunOnce(session, ran.get(session.id) ?? []),
    ...callsHaveOneResult(session),
    ...linesAreThereOnce(session),
    ...runsHaveOneEnd(session),
    ...messagesAreSaidOnce(session, sent.get(session.id) ?? []),
    ...questionsHaveOneAnswer(session),
  ])
}

function callsRunOnce(session: SeenSession, ledger: Referee['ledger']): string[] {
  const problems: string[] = []
  const starts = new Map<string, number>()
  const resumes: number[] = []
  for (const line of session.lines) {
    if (line.type === 'run_start' && line.runStart.resumes !== undefined) resumes.push(line.seq)
    if (line.type !== 'tool_start') continue
    const { callId } = line.toolStart
    if (starts.has(callId)) problems.push(`call ${callId} of ${name(session)} started twice`)
    starts.set(callId, line.seq)
  }
  for (const [callId, entries] of Map.groupBy(ledger, (entry) => entry.callId)) {
    const start = starts.get(callId)
    if (start === undefined) problems.push(`${callId} of ${name(session)} ran without a tool_start`)
    // Whoever resumes a run repeats what is safe to repeat.
    const most = entries[0]?.tool === 'look' ? 1 + resumes.filter((seq) => seq > (start ?? 0)).length : 1
    if (entries.length > most) problems.push(`${callId} of ${name(session)} ran ${entries.length} times`)
  }
  return problems
}

function callsHaveOneResult(session: SeenSession): string[] {
  const results = new Map<string, number>()
  for (const { message } of messagesOf(session.lines)) {
    for (const block of message.content) {
      if (block.type === 'tool_use') results.set(block.toolUse.id, results.get(block.toolUse.id) ?? 0)
      if (block.type !== 'tool_result') continue
      results.set(block.toolResult.toolUseId, (results.get(block.toolResult.toolUseId) ?? 0) + 1)
    }
  }
  return [...results].flatMap(([id, times]) =>
    times === 1 ? [] : [`call ${id} of ${name(session)} has ${times} results`],
  )
}

function linesAreThereOnce(session: SeenSession): string[] {
  const ids = counted(session.lines.flatMap((line) => ('id' in line ? [line.id] : [])))
  return [...ids].flatMap(([id, times]) =>
    times === 1 ? [] : [`line ${id} of ${name(session)} is there ${times} times`],
  )
}

function runsHaveOneEnd(session: SeenSession): string[] {
  const problems: string[] = []
  const ends = counted(session.lines.flatMap((line) => (line.type === 'run_end' ? [line.runEnd.runId] : [])))
  const begun = new Set(session.lines.flatMap((line) => (line.type === 'run_start' ? [line.runStart.runId] : [])))
  for (const runId of begun) {
    if (ends.get(runId) !== 1) problems.push(`run ${runId} of ${name(session)} has ${ends.get(runId) ?? 0} ends`)
  }
  for (const line of session.lines) {
    if (line.type === 'run_end' && line.runEnd.outcome === 'failed')
      problems.push(`run ${line.runEnd.runId} of ${name(session)} failed: ${line.runEnd.reason ?? ''}`)
  }
  return problems
}

function messagesAreSaidOnce(session: SeenSession, sent: readonly SentMessage[]): string[] {
  const said = counted(
    messagesOf(session.lines)
      .filter(({ message }) => message.role === 'user')
      .flatMap(({ message }) =>
        message.content.flatMap((block) => (block.type === 'text' ? block.text.content.trim().split(/\s+/) : [])),
      ),
  )
  return sent.flatMap(({ name: message, told, attempts }) => {
    const times = said.get(message) ?? 0
    // An earlier attempt may have been under way when a later one was refused.
    const [least, most] = told === 'accepted' ? [1, 1] : told === 'busy' && attempts === 1 ? [0, 0] : [0, 1]
    const isRight = times >= least && times <= most
    return isRight ? [] : [`${message} in ${name(session)} was ${told}, and was said ${times} times`]
  })
}

function questionsHaveOneAnswer(session: SeenSession): string[] {
  const answers = counted(
    session.lines.flatMap((line) => (line.type === 'permission_result' ? [line.permissionResult.requestId] : [])),
  )
  return [...answers].flatMap(([id, times]) =>
    times === 1 ? [] : [`question ${id} of ${name(session)} has ${times} answers`],
  )
}

function messagesOf(lines: readonly Line[]): Extract<Line, { type: 'message' }>[] {
  return lines.filter((line) => line.type === 'message')
}

function counted(all: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const each of all) counts.set(each, (counts.get(each) ?? 0) + 1)
  return counts
}
