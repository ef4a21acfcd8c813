import { z } from 'zod'
import { SessionError, type Session } from '@tapetree/session'
import type { LiveSession } from '../../live/live-session.ts'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)

/** The format of the store: ids become folder names. */
export const sessionParameter = z.object({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) })
export const messageParameters = sessionParameter.extend({ msg_id: id })
export const requestParameters = sessionParameter.extend({ request_id: id })
export const entryParameters = sessionParameter.extend({ entry_id: id })
export const jobParameters = sessionParameter.extend({ job_id: z.string().regex(/^job-[0-9a-f]{12}$/) })
export const blobParameters = sessionParameter.extend({ sha256: z.string().regex(/^[0-9a-f]{64}$/) })

/** Reads a session without making it live. */
export async function readSession<T>(
  sessions: ReachableSessions,
  sessionId: string,
  read: (session: Session, live: LiveSession | undefined) => T | Promise<T>,
): Promise<T> {
  const live = await sessions.peek(sessionId)
  if (live) return read(live.session, live)
  await using session = await sessions.store.open(sessionId, { readOnly: true })
  return await read(session, undefined)
}

/**
 * Closes a session that is about to be moved or erased; its clients are told that it is gone. Rejects with `session-owned` if
 * another process writes it: then it stays, and so do its clients.
 */
export async function releaseToMove(sessions: ReachableSessions, sessionId: string): Promise<void> {
  const live = await sessions.peek(sessionId)
  const owner = live?.isWatched ? await live.session.currentOwner() : undefined
  if (owner) throw new SessionError('session-owned', owner.reason)
  await sessions.release(sessionId)
}
