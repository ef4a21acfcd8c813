import { SessionError, type SessionInfo, type SessionStore } from '@tapetree/session'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { findSession } from '../../host/find-session.ts'
import type { LocalSource } from '../../host/local-source.ts'
import type { SessionHost } from '../../host/session-host.ts'
import { write, type Io } from '../../command-line/io.ts'
import type { OpenedSession, SessionSource } from '../../session-source.ts'
import { isEmptySession } from '../../text/session-title.ts'

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

/** Closes the sessions of a chat. Those that it made and that nobody used go to the trash; gives their ids. */
export async function closeChat(
  source: LocalSource,
  { host, store }: { host: SessionHost; store: SessionStore },
): Promise<ReadonlySet<string>> {
  const discarded = new Set<string>()
  const inUse = new Set<string>()
  for (const id of source.made) if (await host.isInUse(id)) inUse.add(id)
  await source.close()
  for (const id of source.made) if (!inUse.has(id) && (await discardUnused(store, id))) discarded.add(id)
  return discarded
}

/** When the screen has gone: what to type to go on. */
export async function sayGoodbye(
  last: string | undefined,
  discarded: ReadonlySet<string>,
  io: Pick<Io, 'stderr'>,
): Promise<void> {
  if (last === undefined || discarded.has(last)) return
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
  return !isEmptySession(session.info) || (await hasCommands(session.localFolder))
}

/** A command that was started and is not in the log yet: it may still be at work, and its output is there. */
async function hasCommands(localFolder: string | undefined): Promise<boolean> {
  if (localFolder === undefined) return false
  const commands = await readdir(join(localFolder, 'spool')).catch(() => [])
  return commands.length > 0
}
