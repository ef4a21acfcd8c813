import { chmod, lstat, readdir, mkdir, mkdtemp, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Places } from '../host/places.ts'
import { acquireWriterLock } from '@tapetree/session/stores/file'
import { execFile } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { version } from '../command-line/version.ts'
import type { CommandLimits, SandboxSupport } from '@tapetree/agent/sandbox'
import type { SessionInfo, SessionStore } from '@tapetree/session'
import { once } from 'node:events'
import { connect } from 'node:net'
import { openStore } from '../host/open-store.ts'
import type { StoreAddress } from '../host/store-address.ts'

/** The result of one check. */
export interface Check {
  /** The subject, such as `ripgrep`. */
  name: string
  status: 'ok' | 'warning' | 'failed'
  /** A sentence. */
  says: string
  /** What to do: a sentence, or a command. */
  fix?: string
  /** Fixes the problem and returns what was done. Only for fixes that lose nothing. */
  mend?: () => Promise<string>
}

export function ok(name: string, says: string): Check {
  return { name, status: 'ok', says }
}

export function warning(name: string, says: string, fix?: string): Check {
  return { name, status: 'warning', says, ...(fix !== undefined && { fix }) }
}

export function failed(name: string, says: string, fix?: string): Check {
  return { name, status: 'failed', says, ...(fix !== undefined && { fix }) }
}

/** A check that throws has failed, with the error as the reason. */
export async function attempt(name: string, look: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await look()
  } catch (error) {
    return [failed(name, `The check failed: ${error instanceof Error ? error.message : String(error)}`)]
  }
}

/** Our folders, and the files with keys, must be private to their owner. */
export async function folderChecks({ config, sessions, state, runtime }: Places): Promise<Check[]> {
  const folders = [
    ['settings folder', config],
    ['sessions folder', sessions],
    ['state folder', state],
    ['sockets folder', runtime],
  ] as const
  const checks: Check[] = []
  for (const [name, path] of folders) checks.push(await checkFolder(name, path))
  for (const folder of [config, state, join(state, 'tls')])
    for (const path of await secretFiles(folder)) checks.push(await checkFile(path))
  return checks
}

async function checkFolder(name: string, path: string): Promise<Check> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return ok(name, `${path} does not exist yet. It is created when needed.`)
  if (!found.isDirectory()) return failed(name, `${path} is not a folder.`, `Move it elsewhere.`)
  const foreign = belongsToOther(found.uid)
  if (foreign) return failed(name, `${path} belongs to another user.`, `Change its owner, or set TAPETREE_HOME.`)
  if ((found.mode & 0o077) === 0) return ok(name, `${path} is private.`)
  return {
    ...warning(name, `Other users can access ${path} (${modeOf(found.mode)}).`, `chmod 700 '${path}'`),
    mend: async () => {
      await chmod(path, 0o700)
      return `${path} is private now.`
    },
  }
}

async function checkFile(path: string): Promise<Check> {
  const { mode, uid } = await lstat(path)
  if (belongsToOther(uid)) return failed('private files', `${path} belongs to another user.`, 'Move it elsewhere.')
  if ((mode & 0o077) === 0) return ok('private files', `${path} is private.`)
  return {
    ...failed(
      'private files',
      `Other users can read ${path} (${modeOf(mode)}), so it is not used.`,
      `chmod 600 '${path}'`,
    ),
    mend: async () => {
      await chmod(path, 0o600)
      return `${path} is private now.`
    },
  }
}

/** Keys, tokens and certificates. */
async function secretFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries
    .filter(
      (entry) =>
        entry.isFile() && /^(?:credentials|tokens?|mcp-pins|servers)\b.*\.json$|\.(?:pem|key)$/.test(entry.name),
    )
    .map((entry) => join(folder, entry.name))
}

function belongsToOther(uid: number): boolean {
  const own = process.getuid?.()
  return own !== undefined && own !== uid
}

function modeOf(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}

/** Requirements of the machine: Node, disk space, locks, search. */
export async function machineChecks(places: Places): Promise<Check[]> {
  return [
    ok('version', `This is tapetree ${version} on Node ${process.versions.node}, ${process.platform} ${process.arch}.`),
    await checkRoom(places.sessions),
    await checkLock(places.sessions),
    checkSearch(),
    await checkRipgrep(),
    await checkSandbox(),
    await checkCommandLimits(),
  ]
}

const littleRoom = 1e9
const noRoom = 50e6

async function checkRoom(folder: string): Promise<Check> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const says = `${(free / 1e9).toFixed(1)} GB are free on the disk of the sessions (${folder}).`
  if (free < noRoom) return failed('disk', says, 'Free some disk space: nothing can be saved without it.')
  return free < littleRoom ? warning('disk', says, 'Free some disk space.') : ok('disk', says)
}

/** Takes a lock and releases it, to see whether this file system supports locks. */
async function checkLock(folder: string): Promise<Check> {
  const place = await mkdtemp(join(folder, '.doctor-'))
  try {
    const attempt = await acquireWriterLock(join(place, 'lock'))
    if (attempt.type !== 'locked') {
      const why = attempt.type === 'unavailable' ? attempt.reason : 'Another process holds it.'
      return failed('lock', `Files in ${folder} cannot be locked. ${why}`, 'Keep the sessions on a local disk.')
    }
    attempt.lock.release()
    return ok('lock', `File locks work (${attempt.lock.kind}), so a session has one writer.`)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

function checkSearch(): Check {
  const database = new DatabaseSync(':memory:')
  try {
    database.exec('CREATE VIRTUAL TABLE words USING fts5(text)')
    return ok('search', 'SQLite has full-text search.')
  } catch {
    return failed('search', 'The SQLite of this Node has no full-text search (FTS5).', 'Install Node from nodejs.org.')
  } finally {
    database.close()
  }
}

async function checkRipgrep(): Promise<Check> {
  try {
    const { rgPath } = (await import('@vscode/ripgrep')) as { rgPath: string }
    const { stdout } = await promisify(execFile)(rgPath, ['--version'], { timeout: 5000 })
    return ok('ripgrep', `${stdout.split('\n')[0]} runs.`)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return failed('ripgrep', `ripgrep does not run: ${why}`, 'Reinstall tapetree with optional dependencies.')
  }
}

/** Whether commands can run in a sandbox. Loaded only here, because the check starts programs. */
export async function checkSandbox(probe?: () => Promise<SandboxSupport>): Promise<Check> {
  const support = await (probe ?? (await import('@tapetree/agent/sandbox')).probeSandbox)()
  if (support.type === 'bubblewrap') {
    return ok(
      'sandbox',
      `Commands can run in a sandbox (bubblewrap ${support.version}), so the default mode is sandboxed.`,
    )
  }
  const says = `Commands cannot run in a sandbox, so the default mode is ask. ${support.reason}`
  return warning('sandbox', says, support.repair)
}

/** Whether the resource limits of commands can be enforced. */
export async function checkCommandLimits(problemOf?: (limits: CommandLimits) => string | undefined): Promise<Check> {
  problemOf ??= (await import('@tapetree/agent/sandbox')).limitProblem
  const problem = problemOf({ cpuSeconds: 1, memoryBytes: 1, fileBytes: 1, processes: 1 })
  if (problem !== undefined) return warning('command limits', problem)
  const kinds = 'the processor time, memory and file size of each process, and the number of processes'
  return ok('command limits', `Commands in the sandbox can have limits: ${kinds}. There is no total of memory.`)
}

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

/** Whether the database that holds sessions can be reached, and whether its schema fits. */
export async function storeChecks(address: StoreAddress | undefined): Promise<Check[]> {
  if (address?.type !== 'postgres') return []
  const { databaseState } = await import('@tapetree/session/stores/postgres')
  const { shown, url } = address
  const state = await databaseState(url).catch((error: unknown) =>
    error instanceof Error ? error : new Error('unknown'),
  )
  if (state instanceof Error) {
    return [failed('store', `${shown}: ${state.message}`, 'Check the address, the password and the access rules.')]
  }
  const { serverVersion, schemaVersion, neededVersion } = state
  const says = `${shown} is reachable (PostgreSQL ${serverVersion}), with version ${schemaVersion} of the schema`
  if (schemaVersion === neededVersion) return [ok('store', `${says}.`)]
  const fix = schemaVersion < neededVersion ? 'tapetree store migrate <store>' : 'Upgrade tapetree.'
  return [failed('store', `${says}, and ${neededVersion} is needed.`, fix)]
}
