import type { SessionInfo, SessionStore } from '@tapetree/session'
import { once } from 'node:events'
import { readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openStore } from '../../host/open-store.ts'
import type { Places } from '../../host/places.ts'
import { ok, warning, type Check } from './check.ts'

/** The sessions, their index, and stale sockets. */
export async function sessionChecks(places: Places): Promise<Check[]> {
  const store = await openStore(places)
  try {
    return [await checkIndex(places.sessions), await checkLogs(store), await checkSockets(places.runtime)]
  } finally {
    await store.close()
  }
}

async function checkLogs(store: SessionStore): Promise<Check> {
  let count = 0
  const damaged: SessionInfo[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ limit: 1000, ...(cursor !== undefined && { cursor }) })
    count += page.sessions.length
    damaged.push(...page.sessions.filter((session) => session.damaged))
    cursor = page.cursor
  } while (cursor !== undefined)
  if (damaged.length === 0) return ok('sessions', `There are ${count}; none is damaged.`)
  const [first] = damaged
  const says = `${damaged.length} of ${count} are damaged: ${damaged
    .slice(0, 5)
    .map(({ id }) => id)
    .join(', ')}.`
  return warning(
    'sessions',
    `${says} Everything that is readable is shown, and all losses are reported.`,
    `tapetree log verify ${first?.id}`,
  )
}

/** Derived from the logs, so a broken one can be deleted at any time. */
async function checkIndex(folder: string): Promise<Check> {
  const files = (await readdir(folder)).filter((name) => /^index-\d+\.sqlite$/.test(name))
  const broken = files.filter((name) => !isWhole(join(folder, name)))
  if (broken.length === 0)
    return ok('index', files.length === 0 ? 'The index is created with the first list.' : 'The index is intact.')
  return {
    ...warning(
      'index',
      `The session index (${broken.join(', ')}) is broken. Lists are slow without it.`,
      'tapetree doctor --fix',
    ),
    mend: async () => {
      for (const name of broken) {
        for (const ending of ['', '-wal', '-shm', '-journal'])
          await rm(join(folder, `${name}${ending}`), { force: true })
      }
      return 'Removed the index; it is rebuilt from the logs.'
    },
  }
}

function isWhole(file: string): boolean {
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 1000 })
    try {
      return Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0] === 'ok'
    } finally {
      database.close()
    }
  } catch (error) {
    // Another process uses it, so its state is unknown.
    return (error as { errcode?: number }).errcode === 5
  }
}

async function checkSockets(folder: string): Promise<Check> {
  const names = await readdir(folder).catch(() => [])
  const stale: string[] = []
  const sockets = names.filter((name) => name.endsWith('.sock'))
  for (const name of sockets) if (await isRefused(join(folder, name))) stale.push(join(folder, name))
  const living = sockets.length - stale.length
  if (stale.length === 0) return ok('sockets', `${living} processes accept attached screens.`)
  return {
    ...warning('sockets', `${stale.length} sockets remain of processes that have exited.`, 'tapetree doctor --fix'),
    mend: async () => {
      for (const path of stale) await rm(path, { force: true })
      return `Removed ${stale.length}.`
    },
  }
}

/** Only what the system reports as dead; a slow process is alive. */
async function isRefused(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(500) })
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  } finally {
    socket.destroy()
  }
}
