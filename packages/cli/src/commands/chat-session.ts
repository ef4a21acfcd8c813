import { SessionError, type SessionInfo, type SessionStore } from '@tapetree/session'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flag, textOption, type Invocation } from '../command.ts'
import { usageFailure } from '../failure.ts'
import { findSession } from '../host/find-session.ts'
import { write, type Io } from '../io.ts'
import type { OpenedSession, SessionSource } from '../session-source.ts'

/** Which session the chat begins with. */
export type WantedSession =
  | { type: 'new' }
  | { type: 'pick' }
  | { type: 'open'; session: SessionInfo }
  | { type: 'fork'; session: SessionInfo }

const ways = ['continue', 'resume', 'fork', 'session'] as const

export async function sessionWanted(
  invocation: Invocation,
  { store, cwd }: { store: SessionStore; cwd: string },
): Promise<WantedSession> {
  const given = ways.filter((name) => invocation.values[name] !== undefined)
  if (given.length > 1) {
    throw usageFailure(`${given.map((name) => `--${name}`).join(' and ')} name different sessions. Use one of them.`)
  }
  const find = (reference: string): Promise<SessionInfo> => findSession(store, reference, { cwd })
  const [way] = given
  switch (way) {
    case undefined:
      return { type: 'new' }
    case 'continue':
      return { type: 'open', session: await find('last') }
    case 'resume': {
      const named = textOption(invocation, way)
      return named === undefined ? { type: 'pick' } : { type: 'open', session: await find(named) }
    }
    case 'fork':
      return { type: 'fork', session: await find(textOption(invocation, way) ?? 'last') }
    case 'session': {
      const named = textOption(invocation, way)
      if (named === undefined || flag(invocation, way)) throw usageFailure('--session needs the name of one.')
      return { type: 'open', session: await find(named) }
    }
    default:
      return way satisfies never
  }
}

/** Undefined where a list is to be shown first. */
export async function openWanted(wanted: WantedSession, source: SessionSource): Promise<OpenedSession | undefined> {
  switch (wanted.type) {
    case 'new':
      return source.create()
    case 'pick':
      return undefined
    case 'open':
      return source.open(wanted.session.id)
    case 'fork':
      return source.fork(wanted.session.id)
    default:
      return wanted satisfies never
  }
}

/** When the screen has gone: what to type to go on. */
export async function sayGoodbye({
  store,
  made,
  last,
  io,
}: {
  store: SessionStore
  /** The session that was made for this chat, unless somebody is still at it. */
  made: string | undefined
  last: string | undefined
  io: Pick<Io, 'stderr'>
}): Promise<void> {
  const isDiscarded = made !== undefined && (await discardUnused(store, made))
  if (last === undefined || (isDiscarded && made === last)) return
  await write(io.stderr, `Session ${last}. To go on with it: tapetree -c\n`)
}

/** A session in which nothing was said or done is of no use to anybody: it goes to the trash. Says whether it is gone. */
export async function discardUnused(store: SessionStore, sessionId: string): Promise<boolean> {
  try {
    if (await isUsed(store, sessionId)) return false
    await store.delete(sessionId)
    return true
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    if (error.code === 'session-owned') return false // somebody else goes on with it
    if (error.code === 'session-not-found') return true
    throw error
  }
}

async function isUsed(store: SessionStore, sessionId: string): Promise<boolean> {
  await using session = await store.open(sessionId, { readOnly: true })
  const { messageCount, queueLength, name } = session.info
  return messageCount > 0 || queueLength > 0 || name !== '' || (await hasCommands(session.localFolder))
}

/** A command that was started and is not in the log yet: it may still be at work, and its output is there. */
async function hasCommands(localFolder: string | undefined): Promise<boolean> {
  if (localFolder === undefined) return false
  const commands = await readdir(join(localFolder, 'spool')).catch(() => [])
  return commands.length > 0
}
