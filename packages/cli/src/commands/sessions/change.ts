import { Jobs } from '@tapetree/agent/tools'
import { SessionError, type Erased, type SessionInfo, type SessionStore } from '@tapetree/session'
import { join } from 'node:path'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { findSession } from '../../host/find-session.ts'
import { ownedElsewhere } from '../../host/open-store.ts'
import { placesOf } from '../../host/places.ts'
import { askYesNo, isInteractive, write, printJson, type Io } from '../../command-line/io.ts'
import { sessionTitle } from '../../text/describe-entry.ts'
import { withStore } from '../../sessions/with-store.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { changeSession } from '../../host/claim-or-attach.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { forgetPrompts } from '../../tui/input/history.ts'

export function runSessionsArchive(invocation: Invocation, io: Io): Promise<ExitCode> {
  return moveSession(invocation, io, {
    place: 'archive',
    find: (store, reference) => findSession(store, reference, { cwd: io.cwd }),
    move: (store, id) => store.archive(id),
    says: (id) => `Archived session ${id}. To restore it: tapetree sessions restore ${id}`,
  })
}

/** Moves it to the trash, or deletes it for good: nothing is deleted automatically. */
export function runSessionsDelete(invocation: Invocation, io: Io): Promise<ExitCode> {
  if (flag(invocation, 'forever')) return eraseSession(invocation, io)
  if (flag(invocation, 'yes')) throw usageFailure('--yes is only for --forever: the trash needs no confirmation.')
  return moveSession(invocation, io, {
    place: 'trash',
    find: (store, reference) => findSession(store, reference, { cwd: io.cwd }),
    move: (store, id) => store.delete(id),
    says: (id) => `Moved session ${id} to the trash. To restore it: tapetree sessions restore ${id}`,
  })
}

async function eraseSession(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = ''] = invocation.positionals
  return withStore(io, async (store) => {
    const found = await findAnywhere(store, reference, io.cwd)
    const isJson = flag(invocation, 'json')
    const title = sessionTitle(found)
    const named = title === '' ? found.id : `${found.id} (${title})`
    if (!flag(invocation, 'yes')) {
      if (!isInteractive(io)) throw usageFailure('--forever requires --yes if there is no terminal to ask on.')
      if (!(await askYesNo(io, `Delete session ${named} for good? It cannot be restored.`))) {
        await write(io.stderr, 'Nothing was deleted.\n')
        return exitCodes.ok
      }
    }
    const { forks } = await erase(store, found, join(placesOf(io).state, 'history.jsonl'))
    if (isJson) await printJson(io, { id: found.id, erased: true, forks })
    else {
      const copies = forks.length === 0 ? '' : `These sessions contain copies of it:\n${forks.join('\n')}\n`
      await write(io.stderr, `Deleted session ${found.id} for good.\n${copies}`)
    }
    return exitCodes.ok
  })
}

/** Also stops background commands of the session, and removes its prompts from the history of the composer. */
async function erase(store: SessionStore, { id, path }: SessionInfo, historyFile: string): Promise<Erased> {
  const owned = (): Failure => ownedElsewhere(id, 'It is running or open on a screen. Close it there first.')
  const texts: string[] = []
  // Only active sessions can be opened by id. One that cannot be read can still be erased.
  const opening = store.open(id).catch(() => (path === undefined ? undefined : store.load(path, { readOnly: true })))
  {
    await using session = await opening.catch(() => undefined)
    if (session?.owner?.process !== undefined) throw owned()
    if (path !== undefined) await new Jobs().stopAll(path)
    for await (const line of session?.lines() ?? []) if (line.type === 'line') texts.push(line.text)
  }
  const isFrom = (text: string): boolean => {
    const escaped = JSON.stringify(text).slice(1, -1)
    return texts.some((line) => line.includes(escaped))
  }
  // First: after a crash in between, the session is still there and the command can be repeated.
  await forgetPrompts(historyFile, { sessionId: id, isFrom })
  return store.erase(id).catch((error: unknown) => {
    throw error instanceof SessionError && error.code === 'session-owned' ? owned() : error
  })
}

async function findAnywhere(store: SessionStore, reference: string, cwd: string): Promise<SessionInfo> {
  return findSession(store, reference, { cwd }).catch(async (error: unknown) => {
    if (!(error instanceof Failure) || error.type !== 'session-not-found') throw error
    // The first error names similar sessions.
    return findPutAway(store, reference).catch(() => Promise.reject(error))
  })
}

export function runSessionsRestore(invocation: Invocation, io: Io): Promise<ExitCode> {
  return moveSession(invocation, io, {
    place: 'active',
    find: findPutAway,
    move: (store, id) => store.restore(id),
    says: (id) => `Restored session ${id}.`,
  })
}

interface Move {
  place: 'active' | 'archive' | 'trash'
  find: (store: SessionStore, reference: string) => Promise<SessionInfo>
  move: (store: SessionStore, id: string) => Promise<void>
  says: (id: string) => string
}

async function moveSession(invocation: Invocation, io: Io, { place, find, move, says }: Move): Promise<ExitCode> {
  const [reference = ''] = invocation.positionals
  const session = await withStore(io, async (store) => {
    const found = await find(store, reference)
    await move(store, found.id).catch((error: unknown) => {
      if (!(error instanceof SessionError) || error.code !== 'session-owned') throw error
      throw ownedElsewhere(found.id, 'It is running or open on a screen. Close it there first.')
    })
    return found
  })
  const title = sessionTitle(session)
  if (flag(invocation, 'json')) await printJson(io, { id: session.id, place })
  else await write(io.stderr, `${title === '' ? '' : `${title}\n`}${says(session.id)}\n`)
  return exitCodes.ok
}

async function findPutAway(store: SessionStore, reference: string): Promise<SessionInfo> {
  for (const place of ['archive', 'trash'] as const) {
    try {
      return await findSession(store, reference, { place })
    } catch (error) {
      if (!(error instanceof Failure) || error.type !== 'session-not-found') throw error
    }
  }
  throw new Failure(exitCodes.notFound, 'There is no such session in the archive or the trash.', {
    type: 'session-not-found',
    next: ['tapetree sessions list --all --archive', 'tapetree sessions list --all --trash'],
  })
}

export async function runSessionsLabel(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = '', entryReference = '', ...words] = invocation.positionals
  const label = harmlessLine(words.join(' ')).trim()
  const done = await withStore(io, async (store) => {
    const found = await findSession(store, reference, { cwd: io.cwd })
    const entryId = await entryIn(store, found.id, entryReference)
    await changeSession(store, found.id, {
      here: (session) => session.setLabel(entryId, label),
      there: (handle) => handle.run('label', { entry_id: entryId, label }),
    })
    return { id: found.id, entryId }
  })
  if (flag(invocation, 'json')) await printJson(io, { id: done.id, entry_id: done.entryId, label })
  else if (label === '') await write(io.stderr, `Removed the label of entry ${done.entryId}.\n`)
  else await write(io.stderr, `Labeled entry ${done.entryId} ${JSON.stringify(label)}.\n`)
  return exitCodes.ok
}

async function entryIn(store: SessionStore, sessionId: string, reference: string): Promise<string> {
  await using session = await store.open(sessionId, { readOnly: true })
  return await findEntry(session, reference)
}

export async function runSessionsRename(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = '', ...words] = invocation.positionals
  const name = harmlessLine(words.join(' ')).trim()
  const id = await withStore(io, async (store) => {
    const found = await findSession(store, reference, { cwd: io.cwd })
    await changeSession(store, found.id, {
      here: (session) => session.appendSessionInfo(name),
      there: (handle) => handle.run('rename', { name }),
    })
    return found.id
  })
  if (flag(invocation, 'json')) await printJson(io, { id, name })
  else await write(io.stderr, `Renamed session ${id} to ${JSON.stringify(name)}.\n`)
  return exitCodes.ok
}
