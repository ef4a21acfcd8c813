import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import { openStore, ownedElsewhere } from '../host/open-store.ts'
import type { Io } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'

/** Does something with the sessions of this user and closes them, whatever came of it. */
export async function withStore<T>(io: Io, work: (store: SessionStore) => Promise<T>): Promise<T> {
  const store = await openStore(placesOf(io))
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** A session that this process may write. Where another one does, says who, and how to get there. */
export async function openForWriting(store: SessionStore, sessionId: string): Promise<Session> {
  const session = await store.open(sessionId)
  const { readOnlyReason: why, owner } = session
  if (why === undefined) return session
  await session.close()
  if (!owner) throw new SessionError('newer-format', why)
  throw ownedElsewhere(sessionId, why)
}
