import { SessionError } from '@tapetree/session'
import { setTimeout as wait } from 'node:timers/promises'
import type { OpenedSession, SessionAccess } from '../session-source.ts'
import { MovingSession } from './moving-session.ts'

export interface FollowOptions {
  /** Opens the session wherever it is now. */
  reopen: () => Promise<OpenedSession>
  signal: AbortSignal
}

export interface FollowedSession {
  opened: OpenedSession
  /** Resolves when the session needs no more watching: it is owned here, closed or gone. */
  done: Promise<void>
}

/** How often to check for a change of owner. */
const lookMs = 2000

/** A session of another process. When that process exits, continues here or with the next owner. */
export function followOwner(first: OpenedSession, options: FollowOptions): FollowedSession {
  const moving = new MovingSession(first.handle)
  let { access } = first
  const done = stayWithSession(moving, { ...options, access: () => access, moved: (to) => (access = to) })
  const opened = {
    handle: moving,
    cwd: first.cwd,
    get access() {
      return access
    },
  }
  return { opened, done }
}

interface Following extends FollowOptions {
  access: () => SessionAccess
  moved: (to: SessionAccess) => void
}

async function stayWithSession(moving: MovingSession, { reopen, signal, access, moved }: Following): Promise<void> {
  while (!moving.isClosed && !signal.aborted && access().type !== 'owner') {
    await nextLook(moving, signal)
    const { status } = moving
    // Its owner has archived or deleted it: no one reopens it.
    if (status.type === 'closed' && status.reason === 'gone') return moving.end('gone')
    const isFine = access().type === 'attached' && status.type === 'attached'
    if (isFine || moving.isClosed || signal.aborted) continue
    const place = await reopen().catch((error: unknown) => {
      if (error instanceof SessionError && error.code === 'session-not-found') return 'gone' as const
      return undefined // the next attempt may succeed
    })
    if (!place) continue
    if (place === 'gone') return moving.end('gone')
    if (place.access.type === 'read-only') {
      await place.handle.close()
      continue
    }
    moved(place.access)
    await moving.moveTo(place.handle)
  }
  if (signal.aborted) await moving.close()
  else moving.stay()
}

/** After the interval, or as soon as the connection is cut. */
async function nextLook(moving: MovingSession, signal: AbortSignal): Promise<void> {
  const cut = new AbortController()
  const stop = moving.subscribe(({ type }) => {
    if (type === 'status' && ['waiting', 'closed'].includes(moving.status.type)) cut.abort()
  })
  await wait(lookMs, undefined, { ref: false, signal: AbortSignal.any([cut.signal, signal]) }).catch(() => undefined)
  stop()
}
