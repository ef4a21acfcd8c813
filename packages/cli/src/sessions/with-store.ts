import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import { openStore, ownedElsewhere } from '../host/open-store.ts'
import type { Io } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'

/** Calls a function with the sessions of this user, and always closes them. */
export async function withStore<T>(io: Io, work: (store: SessionStore) => Promise<T>): Promise<T> {
  const store = await openStore(placesOf(io))
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/** A session that this process may write. If another process owns it, throws an error that names the owner and how to attach. */
export async function openForWriting(store: SessionStore, sessionId: string): Promise<Session> {
  const session = await store.open(sessionId)
  const { readOnlyReason: why, owner } = session
  if (why === undefined) return session
  await session.close()
  if (!owner) throw new SessionError('newer-format', why)
  throw ownedElsewhere(sessionId, why)
}
