import type { Session } from '@tapetree/session'
import type { LiveSession } from '../../live/live-session.ts'
import type { LiveSessions } from '../../live/live-sessions.ts'

/** Reads a session as it stands. One that is not live stays so: looking at it starts nothing. */
export async function readSession<T>(
  sessions: LiveSessions,
  sessionId: string,
  read: (session: Session, live: LiveSession | undefined) => T | Promise<T>,
): Promise<T> {
  const live = await sessions.peek(sessionId)
  if (live) return read(live.session, live)
  await using session = await sessions.store.open(sessionId, { readOnly: true })
  return await read(session, undefined)
}
