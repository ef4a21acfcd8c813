import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir } from 'node:fs/promises'
import type { Places } from './places.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'

/** The sessions of this user, as files. The caller closes it. */
export async function openStore({
  sessions,
  workspaces,
}: Pick<Places, 'sessions' | 'workspaces'>): Promise<SessionStore> {
  await mkdir(sessions, { recursive: true, mode: 0o700 })
  return openFileStore({
    folder: sessions,
    erasing: async (sessionId) => {
      const { eraseSnapshots } = await import('@tapetree/agent/workspace')
      return eraseSnapshots(sessionId, { storesFolder: workspaces, sessionsFolder: sessions })
    },
  })
}

export function ownedElsewhere(sessionId: string, why: string): Failure {
  return new Failure(exitCodes.ownedElsewhere, `Session ${sessionId} is open in another process.`, {
    type: 'session-owned',
    why,
    next: [`tapetree attach ${sessionId}`],
  })
}
