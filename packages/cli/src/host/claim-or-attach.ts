import { RemoteSession, type ServerAddress } from '@tapetree/client'
import type { Owner, Session } from '@tapetree/session'
import { settledWithin } from '@tapetree/session/util/deadline'
import { once } from 'node:events'
import { lstat } from 'node:fs/promises'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { transportFor } from './transport.ts'

export interface ClaimOrAttachOptions {
  /** Opens it for writing; where another process writes it, for reading. Asked again and again: its owner may end meanwhile. */
  claim: () => Promise<Session>
  client?: { name?: string; kind?: string }
  /** How many entries to begin with. */
  window?: number
  /** How long an owner may take that does not answer yet. */
  patienceMs?: number
}

/** Where a session is to be had. What is in it is open, and is closed by whoever asked. */
export type FoundSession =
  | { type: 'here'; session: Session }
  | { type: 'there'; handle: RemoteSession; owner: Owner; address: ServerAddress; cwd: string | undefined }
  /** Its owner does not answer, or this version cannot write it. */
  | { type: 'read-only'; session: Session }

const knockEveryMs = 50

/** A session that can be worked with: here, or through the socket of the process that writes it. */
export async function claimOrAttach(options: ClaimOrAttachOptions): Promise<FoundSession> {
  const { claim, patienceMs = 2000 } = options
  const until = Date.now() + patienceMs
  for (;;) {
    const session = await claim()
    if (session.readOnlyReason === undefined) return { type: 'here', session }
    const { owner } = session
    if (!owner || isOfAnotherMachine(owner)) return { type: 'read-only', session }
    // The last look is taken when the time is over.
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

/** Undefined where nobody answers just now. */
async function attachTo(
  { socket }: Owner,
  sessionId: string,
  { client, window }: ClaimOrAttachOptions,
): Promise<{ handle: RemoteSession; address: ServerAddress } | undefined> {
  if (socket === undefined || !(await answers(socket))) return undefined
  const address = { baseUrl: 'http://localhost', ...transportFor({ type: 'unix-socket', path: socket }) }
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

/** Somebody else's socket is not ours to knock at. */
async function answers(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isSocket() || found.uid !== (process.getuid?.() ?? found.uid)) return false
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false // left behind by a process that was killed
  } finally {
    socket.destroy()
  }
}

/** One that answers and then says nothing is waited for no longer than this. */
const attachMs = 5000

/** False as soon as the connection is cut: its owner may be another one by then. */
async function becomesReady(handle: RemoteSession): Promise<boolean> {
  const { promise: isCut, resolve: cut } = Promise.withResolvers<false>()
  const stop = handle.subscribe(() => {
    if (handle.status.type === 'waiting') cut(false)
  })
  const isReady = handle.ready.then(
    // Not the owner any more: it only watches the session itself.
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
