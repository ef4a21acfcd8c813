import { SessionReader } from '../log/session-reader.ts'
import type { ReadableLog } from '../log/log-store.ts'
import { sessionInfoOf, type SessionInfo } from '../state/session-info.ts'

/** The row of a session in a list, by reading its log. */
export async function readSessionInfo(log: ReadableLog, sessionId: string): Promise<SessionInfo> {
  const { state } = await SessionReader.open(log, { whole: true })
  return sessionInfoOf(state, { id: sessionId })
}
