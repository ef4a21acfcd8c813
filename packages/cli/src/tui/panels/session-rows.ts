import type { SearchHit, SessionInfo } from '@tapetree/session'
import { ageOf, costText } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { sessionTitle } from '../../text/session-title.ts'

export interface SessionRow {
  sessionId: string
  /** The entry of a message that matched. */
  entryId?: string
  /** Absent for a match whose session is not in the list. */
  session?: SessionInfo
  text: string
  aside: string
}

/** Sessions whose name, first message or folder contains the typed text, or whose id begins with it; then matching messages. */
export function sessionRows(
  sessions: readonly SessionInfo[],
  { text, hits, now }: { text: string; hits: readonly SearchHit[]; now: number },
): SessionRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const named = sessions.filter(({ id, name, firstText = '', cwd = '' }) => {
    const searched = `${name} ${firstText} ${cwd}`.toLowerCase()
    return words.every((word) => searched.includes(word) || (word.length >= minIdLength && id.startsWith(word)))
  })
  const byId = new Map(sessions.map((session) => [session.id, session]))
  return [
    ...named.map((session) => sessionRow(session, now)),
    ...hits.map((hit) => hitRow(hit, byId.get(hit.sessionId), now)),
  ]
}

/** The shortest id prefix that matches. */
const minIdLength = 4

/** The name shown on the screen. */
export function shownTitle(session: SessionInfo): string {
  return sessionTitle(session) || 'no messages yet'
}

function sessionRow(session: SessionInfo, now: number): SessionRow {
  const { id, name, firstText, modified, cost, damaged } = session
  const preview = name !== '' && firstText !== undefined ? ` – ${harmlessLine(firstText)}` : ''
  const state = [damaged ? 'damaged' : '', statusWords(session), cost > 0 ? costText(cost) : '']
  const aside = [...state, ageOf(modified, now)].filter(Boolean).join(' ')
  return { sessionId: id, session, text: `${shownTitle(session)}${preview}`, aside }
}

function statusWords({ status, queueLength }: SessionInfo): string {
  switch (status) {
    case 'running':
      return 'running'
    case 'requires_action':
      return 'waiting for you'
    case 'ended':
      return 'ended'
    case 'idle':
      return queueLength > 0 ? `${queueLength} waiting` : ''
    default:
      status satisfies never
      return ''
  }
}

function hitRow(
  { sessionId, entryId, snippet, timestamp, role }: SearchHit,
  session: SessionInfo | undefined,
  now: number,
): SessionRow {
  const who = harmlessLine(role)
  const where = session ? `${fitText(shownTitle(session), 24)}: ` : ''
  const text = `${where}${who}: … ${harmlessLine(snippet)}`
  return { sessionId, entryId, ...(session && { session }), text, aside: ageOf(timestamp, now) }
}
