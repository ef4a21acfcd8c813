import type { SessionInfo, SessionStore } from '@tapetree/session'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { findSession } from '../host/find-session.ts'

/** The session to go on with. One whose log has lost something that nobody has looked at yet is not gone on with by a script. */
export async function meantSession(store: SessionStore, reference: string, cwd: string): Promise<SessionInfo> {
  const found = await findSession(store, reference, reference === 'last' ? { cwd } : {})
  await using session = await store.open(found.id, { readOnly: true })
  const lost = session.damage.filter(({ isNew }) => isNew)
  if (lost.length === 0) return found
  throw new Failure(exitCodes.damaged, `The log of session ${found.id} is damaged.`, {
    type: 'log-damaged',
    why: `${lost.length === 1 ? 'One place' : `${lost.length} places`} in it cannot be read. What can be read is still there.`,
    next: [`tapetree log verify ${found.id}`, `tapetree log repair ${found.id}`],
  })
}
