import { rmSync } from 'node:fs'
import { copyFile, constants, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Found } from './import-source.ts'
import { sourceLineOfText, type SourceLine } from './source-lines.ts'
import { inputOf, time, values, words, type Values } from './values.ts'

/** A row as its reader expects it: which table, which id, and the data. */
interface Row {
  table: 'session' | 'message' | 'part'
  id: string
  message?: string
  data: unknown
}

/** The sessions of a database. The file itself is never opened: SQLite would write beside it. A copy is read instead. */
export async function* findInDatabase(path: string): AsyncGenerator<Found> {
  const info = await stat(path).catch(() => undefined)
  if (!info?.isFile()) return
  let sessions: Values[]
  try {
    sessions = await withCopy(path, (database) => {
      return database.prepare('SELECT * FROM session ORDER BY time_created, id').all()
    })
  } catch (error) {
    yield {
      type: 'unusable',
      file: { source: 'opencode', path, reason: error instanceof Error ? error.message : String(error) },
    }
    return
  }
  for (const session of sessions) {
    const id = words(session['id'])
    if (id === undefined) continue
    const cwd = words(session['directory'])
    const parentId = words(session['parent_id'])
    yield {
      type: 'session',
      found: {
        source: 'opencode',
        session: {
          id,
          ...(cwd !== undefined && { cwd }),
          ...(parentId !== undefined && { parentId, subagent: true }),
        },
        path,
        bytes: 0,
        modified: time(session['time_updated']) ?? info.mtime.toISOString(),
        lines: () => databaseLines(path, session),
      },
    }
  }
}

async function* databaseLines(path: string, session: Values): AsyncGenerator<SourceLine> {
  const id = words(session['id']) as string
  const rows = await withCopy(path, (database) => [
    ...all(database, 'SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id', id),
    ...all(database, 'SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id', id),
  ])
  const parts = Map.groupBy(
    rows.filter((row) => 'message_id' in row),
    (row) => row['message_id'],
  )
  const about = {
    title: session['title'],
    time: { created: session['time_created'] },
    revert: inputOf(session['revert']),
  }
  let number = 0
  const line = (row: Row): SourceLine => sourceLineOfText(JSON.stringify(row), (number += 1))
  yield line({ table: 'session', id, data: about })
  for (const message of rows.filter((row) => !('message_id' in row))) {
    const messageId = String(message['id'])
    yield line({ table: 'message', id: messageId, data: inputOf(message['data']) })
    for (const part of parts.get(messageId) ?? []) {
      yield line({ table: 'part', id: String(part['id']), message: messageId, data: inputOf(part['data']) })
    }
  }
}

function all(database: DatabaseSync, sql: string, id: string): Values[] {
  return database.prepare(sql).all(id)
}

async function withCopy<T>(path: string, read: (database: DatabaseSync) => T): Promise<T> {
  const { DatabaseSync: Database } = await import('node:sqlite')
  const database = new Database(await databaseCopies.of(path))
  try {
    database.exec('PRAGMA trusted_schema = OFF')
    return read(database)
  } finally {
    database.close()
  }
}

/** One copy of each database, as long as the database does not change. None survives the process. */
class DatabaseCopies implements AsyncDisposable {
  readonly #copies = new Map<string, { state: string; folder: string }>()
  #removesAtExit = false

  async of(path: string): Promise<string> {
    const known = this.#copies.get(path)
    const state = await stateOf(path)
    if (known?.state === state) return join(known.folder, basename(path))
    if (known) await rm(known.folder, { recursive: true, force: true })
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-import-'))
    this.#copies.set(path, { state, folder })
    if (!this.#removesAtExit) process.once('exit', () => this.#remove())
    this.#removesAtExit = true
    await copyStable(path, join(folder, basename(path)))
    return join(folder, basename(path))
  }

  #remove(): void {
    for (const { folder } of this.#copies.values()) rmSync(folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { folder } of this.#copies.values()) await rm(folder, { recursive: true, force: true })
    this.#copies.clear()
  }
}

/** Dispose of them when the import is over. */
export const databaseCopies = new DatabaseCopies()

/** Copies a database with its write-ahead log. If the program writes in the meantime, it copies again. */
async function copyStable(path: string, copy: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = await stateOf(path)
    await copyFile(path, copy, constants.COPYFILE_FICLONE)
    await rm(`${copy}-wal`, { force: true })
    await copyFile(`${path}-wal`, `${copy}-wal`, constants.COPYFILE_FICLONE).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (before === (await stateOf(path))) return
    if (attempt === maxAttempts) throw new Error('opencode is writing to it; try again when it is idle')
  }
}

const maxAttempts = 5

async function stateOf(path: string): Promise<string> {
  const files = await Promise.all([path, `${path}-wal`].map((each) => stat(each).catch(() => undefined)))
  return files.map((file) => `${file?.size} ${file?.mtimeMs}`).join()
}

/** The sessions of older versions: one JSON file for each session, message and part. */
export async function* findInStorage(folder: string): AsyncGenerator<Found> {
  const sessions = join(folder, 'session')
  for (const project of await namesIn(sessions)) {
    for (const file of await namesIn(join(sessions, project))) {
      if (!file.endsWith('.json')) continue
      const path = join(sessions, project, file)
      const session = await jsonOf(path)
      const id = words(session?.['id'])
      if (!session || id === undefined || !/^[\w-]+$/.test(id)) {
        yield { type: 'unusable', file: { source: 'opencode', path, reason: 'it does not tell which session it is' } }
        continue
      }
      const cwd = words(session['directory'])
      const parentId = words(session['parentID'])
      yield {
        type: 'session',
        found: {
          source: 'opencode',
          session: {
            id,
            ...(cwd !== undefined && { cwd }),
            ...(parentId !== undefined && { parentId, subagent: true }),
          },
          path,
          bytes: 0,
          modified: time(values(session['time'])['updated']) ?? new Date(0).toISOString(),
          lines: () => storageLines(folder, session, id),
        },
      }
    }
  }
}

async function* storageLines(folder: string, session: Values, id: string): AsyncGenerator<SourceLine> {
  let number = 0
  const line = (row: Row): SourceLine => sourceLineOfText(JSON.stringify(row), (number += 1))
  yield line({ table: 'session', id, data: session })
  const messages = await rowsIn(join(folder, 'message', id))
  for (const message of messages.sort(byTime)) {
    yield line({ table: 'message', id: message.id, data: message.data })
    for (const part of await rowsIn(join(folder, 'part', message.id))) {
      yield line({ table: 'part', id: part.id, message: message.id, data: part.data })
    }
  }
}

interface StoredRow {
  id: string
  data: Values
}

/** In the order of their ids, which rise with the time. */
async function rowsIn(folder: string): Promise<StoredRow[]> {
  const rows: StoredRow[] = []
  for (const file of await namesIn(folder)) {
    const data = file.endsWith('.json') ? await jsonOf(join(folder, file)) : undefined
    if (data) rows.push({ id: file.slice(0, -'.json'.length), data })
  }
  return rows
}

function byTime(left: StoredRow, right: StoredRow): number {
  const at = ({ data }: StoredRow): number => Number(values(data['time'])['created']) || 0
  return at(left) - at(right) || (left.id < right.id ? -1 : 1)
}

async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch((): string[] => [])
  return names.sort((left, right) => (left < right ? -1 : 1))
}

/** Undefined for what is not the JSON of an object, or too large for one message. */
async function jsonOf(path: string): Promise<Values | undefined> {
  const info = await stat(path).catch(() => undefined)
  if (!info?.isFile() || info.size > maxFileBytes) return undefined
  const line = sourceLineOfText(await readFile(path, 'utf8'), 1)
  return line.type === 'read' ? line.value : undefined
}

const maxFileBytes = 64 * 2 ** 20
