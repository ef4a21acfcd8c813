import type { SessionHandle } from '@tapetree/client'
import type { Session, SessionStore } from '@tapetree/session'
import { claimOrAttach } from './claim-or-attach.ts'
import { ownedElsewhere } from './open-store.ts'

export interface SessionChanges {
  /** If this process may write the session. */
  here: (session: Session) => Promise<unknown>
  /** If another process writes it and answers. */
  there: (handle: SessionHandle) => Promise<unknown>
}

/** Changes a session here, or through the process that has it open. */
export async function changeSession(store: SessionStore, sessionId: string, changes: SessionChanges): Promise<void> {
  const claim = (): Promise<Session> => store.open(sessionId)
  const found = await claimOrAttach({ claim, client: { name: 'tapetree sessions' } })
  if (found.type === 'there') {
    try {
      await changes.there(found.handle)
    } finally {
      await found.handle.close()
    }
    return
  }
  await using session = found.session
  const { owner, readOnlyReason } = session
  if (owner) throw ownedElsewhere(sessionId, readOnlyReason ?? owner.reason)
  await changes.here(session)
}
