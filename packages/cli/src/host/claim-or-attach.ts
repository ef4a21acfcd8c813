import { RemoteSession, type ServerAddress, type SessionHandle } from '@tapetree/client'
import type { Owner, Session, SessionStore } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import { once } from 'node:events'
import { lstat } from 'node:fs/promises'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { transportFor } from './transport.ts'
import { ownedElsewhere } from './open-store.ts'

export interface ClaimOrAttachOptions {
  /** Opens the session for writing or, if another process writes it, for reading. Called repeatedly: the owner may exit meanwhile. */
  claim: () => Promise<Session>
  client?: { name?: string; kind?: string }
  /** How many entries to load first. */
  window?: number
  /** How long to wait for an owner that does not answer yet. */
  patienceMs?: number
}

/** Where a session is available. The caller closes what it contains. */
export type FoundSession =
  | { type: 'here'; session: Session }
  | { type: 'there'; handle: RemoteSession; owner: Owner; address: ServerAddress; cwd: string | undefined }
  /** The owner does not answer, or this version cannot write the session. */
  | { type: 'read-only'; session: Session }

const knockEveryMs = 50

/** Opens a usable session: here, or through the socket of the process that writes it. */
export async function claimOrAttach(options: ClaimOrAttachOptions): Promise<FoundSession> {
  const { claim, patienceMs = 2000 } = options
  const until = Date.now() + patienceMs
  for (;;) {
    const session = await claim()
    if (session.readOnlyReason === undefined) return { type: 'here', session }
    const { owner } = session
    if (!owner || isOfAnotherMachine(owner)) return { type: 'read-only', session }
    // Tries one last time when the timeout has passed.
    const isOver = Date.now() >= until
    const attached = await attachTo(owner, session.id, options)
    if (attached) {
      const cwd = session.header?.cwd
      await session.close()
      return { type: 'there', owner, cwd, ...attached }
    }
    if (isOver) return { type: 'read-only', session }
    await session.close()
    await wait(knockEveryMs)
  }
}

function isOfAnotherMachine({ host }: Owner): boolean {
  return host !== undefined && host !== hostname()
}

/** Undefined if the owner does not answer now. */
async function attachTo(
  { address: where }: Owner,
  sessionId: string,
  { client, window }: ClaimOrAttachOptions,
): Promise<{ handle: RemoteSession; address: ServerAddress } | undefined> {
  const path = where?.startsWith('unix:') ? where.slice('unix:'.length) : undefined
  if (path === undefined || !(await answers(path))) return undefined
  const address = { baseUrl: 'http://localhost', ...transportFor({ type: 'unix-socket', path }) }
  const handle = await RemoteSession.open({
    ...address,
    sessionId,
    ...(client && { client }),
    ...(window !== undefined && { window }),
  })
  if (await becomesReady(handle)) return { handle, address }
  await handle.close()
  return undefined
}

/** Only connects to sockets of the same user. */
async function answers(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isSocket() || found.uid !== (process.getuid?.() ?? found.uid)) return false
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false // left behind by a killed process
  } finally {
    socket.destroy()
  }
}

/** Timeout for an owner that accepts the connection but sends nothing. */
const attachMs = 5000

/** False once the connection is cut: the owner may have changed. */
async function becomesReady(handle: RemoteSession): Promise<boolean> {
  const { promise: isCut, resolve: cut } = Promise.withResolvers<false>()
  const stop = handle.subscribe(() => {
    if (handle.status.type === 'waiting') cut(false)
  })
  const isReady = handle.ready.then(
    // No longer the owner: it only watches the session itself.
    () => !handle.state('read_only'),
    () => false,
  )
  try {
    const known = Promise.race([isReady, isCut])
    return (await settledWithin(known, { ms: attachMs })) === 'settled' && (await known)
  } finally {
    stop()
  }
}

interface SessionChanges<T> {
  /** If this process may write the session. */
  here: (session: Session) => Promise<T>
  /** If another process writes it and answers. */
  there: (handle: SessionHandle) => Promise<T>
}

/** Changes a session here, or through the process that has it open. Returns what the change does. */
export async function changeSession<T>(store: SessionStore, sessionId: string, changes: SessionChanges<T>): Promise<T> {
  const claim = (): Promise<Session> => store.open(sessionId)
  const found = await claimOrAttach({ claim, client: { name: 'tapetree sessions' } })
  if (found.type === 'there') {
    try {
      return await changes.there(found.handle)
    } finally {
      await found.handle.close()
    }
  }
  await using session = found.session
  const { owner, readOnlyReason } = session
  if (owner) throw ownedElsewhere(sessionId, readOnlyReason ?? owner.reason)
  return await changes.here(session)
}
