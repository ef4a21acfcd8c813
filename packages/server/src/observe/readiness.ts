import type { LiveSessions } from '../live/live-sessions.ts'

export interface ReadinessFacts {
  tenants: ReadonlyMap<string, LiveSessions>
  closing: AbortSignal
}

/** Why requests should go elsewhere just now, in a sentence; undefined where all is well. */
export function notReadyReason({ tenants, closing }: ReadinessFacts): string | undefined {
  if (closing.aborted) return 'The server is going down.'
  const isFull = tenants.size > 0 && [...tenants.values()].every((sessions) => sessions.isFull && !hasIdle(sessions))
  return isFull ? 'No more sessions can be live at once.' : undefined
}

function hasIdle(sessions: LiveSessions): boolean {
  return sessions.opened.some(({ isIdle }) => isIdle)
}
