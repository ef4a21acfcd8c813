import { SessionError, type SessionInfo, type SessionStore } from '@tapetree/session'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { findSession } from '../../host/find-session.ts'
import type { LocalSource } from '../../host/local-source.ts'
import { SessionHost } from '../../host/session-host.ts'
import { write, type Io } from '../../command-line/io.ts'
import { modeOf } from '../../print/run-options.ts'
import type { OpenedSession, SessionSource } from '../../session-source.ts'
import { isEmptySession } from '../../text/describe-entry.ts'
import type { ThinkingLevel } from '@tapetree/agent'
import type { SettingsInput } from '@tapetree/agent/settings'
import type { ChatProblems } from './problems.ts'
import type { Choice } from '@tapetree/client'

/** The session that the chat starts with. */
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
    throw usageFailure(
      `${given.map((name) => `--${name}`).join(' and ')} name different sessions. Use only one of them.`,
    )
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
      if (named === undefined || flag(invocation, way)) throw usageFailure('--session needs the name of a session.')
      return { type: 'open', session: await find(named) }
    }
    default:
      return way satisfies never
  }
}

/** Undefined if a list is shown first. */
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

/** Closes the sessions of a chat. Moves the ones it created but never used to the trash and returns their ids. */
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

/** What to type to continue, printed after the screen closes. */
export async function sayGoodbye(
  last: string | undefined,
  { discarded, folder }: { discarded: ReadonlySet<string>; folder: string },
  io: Pick<Io, 'stderr' | 'cwd'>,
): Promise<void> {
  if (last === undefined || discarded.has(last)) return
  const command = folder === io.cwd ? 'tapetree -c' : `tapetree --session ${last}`
  await write(io.stderr, `To continue session ${last}: ${command}\n`)
}

/** Moves a session without messages or commands to the trash. Returns whether it is gone. */
export async function discardUnused(store: SessionStore, sessionId: string): Promise<boolean> {
  try {
    if (await isUsed(store, sessionId)) return false
    await store.delete(sessionId)
    return true
  } catch (error) {
    if (!(error instanceof SessionError)) throw error
    if (error.code === 'session-owned') return false // another process has continued it
    if (error.code === 'session-not-found') return true
    throw error
  }
}

async function isUsed(store: SessionStore, sessionId: string): Promise<boolean> {
  await using session = await store.open(sessionId, { readOnly: true })
  return !isEmptySession(session.info) || (await hasCommands(session.localFolder))
}

/** A command that was started and is not in the log yet: it may still be running, and its output is there. */
async function hasCommands(localFolder: string | undefined): Promise<boolean> {
  if (localFolder === undefined) return false
  const commands = await readdir(join(localFolder, 'spool')).catch(() => [])
  return commands.length > 0
}

interface ChatHostOptions {
  io: Io
  store: SessionStore
  flags: SettingsInput
  /** Where traces are sent. */
  traceUrl?: string | undefined
  problems: Pick<ChatProblems, 'add'>
}

/** Sessions that this terminal owns, and access to those of other processes. */
export function openChatHost({ io, store, flags, traceUrl, problems }: ChatHostOptions): Promise<SessionHost> {
  return SessionHost.open({
    io,
    store,
    owner: 'terminal',
    flags,
    window: 200,
    clientName: 'terminal',
    traceUrl,
    retainsSnapshots: true,
    // Notices describe setting problems without a source, so that the same sentence appears once.
    onProblem: ({ source, message }) => problems.add(source === 'settings' ? message : `${source}: ${message}`),
  })
}

/** Choices from the command line, except for the model, which must be looked up. */
export function flagsOf(invocation: Invocation): SettingsInput {
  const thinkingLevel = textOption(invocation, 'thinking') as ThinkingLevel | undefined
  const { mode, sandbox } = modeOf(invocation)
  return {
    ...(mode && { permissions: { mode } }),
    ...(sandbox && { sandbox }),
    ...(thinkingLevel && { thinkingLevel }),
  }
}

/** The same, for a session that already has its own choices. */
export function choiceOf({ thinkingLevel, permissions }: SettingsInput): Choice {
  return { ...(thinkingLevel && { thinkingLevel }), ...(permissions?.mode && { mode: permissions.mode }) }
}
