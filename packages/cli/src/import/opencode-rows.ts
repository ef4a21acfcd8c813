import { rmSync, type Dirent } from 'node:fs'
import { copyFile, constants, lstat, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { Found } from './import-source.ts'
import { maxLineBytes, sourceLineOfText, type SourceLine } from './source-lines.ts'
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
    yield* partsOf(messageId)
    parts.delete(messageId)
  }
  // Without their messages nobody knows who said it.
  for (const messageId of parts.keys()) yield* partsOf(messageId)

  function* partsOf(messageId: unknown): Generator<SourceLine> {
    for (const part of parts.get(messageId) ?? []) {
      yield line({ table: 'part', id: String(part['id']), message: String(messageId), data: inputOf(part['data']) })
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
      const read = await fileAt(path)
      const session = read.type === 'read' ? read.value : undefined
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
  const line = (row: Row, file: SourceLine): SourceLine => {
    number += 1
    return file.type === 'read' ? sourceLineOfText(JSON.stringify(row), number) : { ...file, number }
  }
  yield line({ table: 'session', id, data: session }, { type: 'read', number: 0, hash: '', value: session })
  const messages = await rowsIn(join(folder, 'message', id))
  for (const message of messages.sort(byTime)) {
    yield line({ table: 'message', id: message.id, data: dataOf(message) }, message.file)
    for (const part of await rowsIn(join(folder, 'part', message.id))) {
      yield line({ table: 'part', id: part.id, message: message.id, data: dataOf(part) }, part.file)
    }
  }
}

interface StoredRow {
  id: string
  file: SourceLine
}

/** In the order of their ids, which rise with the time. */
async function rowsIn(folder: string): Promise<StoredRow[]> {
  const rows: StoredRow[] = []
  for (const file of await namesIn(folder)) {
    if (file.endsWith('.json'))
      rows.push({ id: file.slice(0, -'.json'.length), file: await fileAt(join(folder, file)) })
  }
  return rows
}

function dataOf({ file }: StoredRow): Values {
  return file.type === 'read' ? file.value : {}
}

function byTime(left: StoredRow, right: StoredRow): number {
  const at = (row: StoredRow): number => Number(values(dataOf(row)['time'])['created']) || 0
  return at(left) - at(right) || (left.id < right.id ? -1 : 1)
}

/** Regular files and folders: links could lead anywhere. */
async function namesIn(folder: string): Promise<string[]> {
  const info = await lstat(folder).catch(() => undefined)
  const entries = info?.isDirectory() ? await readdir(folder, { withFileTypes: true }).catch((): Dirent[] => []) : []
  const names = entries.filter((entry) => entry.isFile() || entry.isDirectory()).map(({ name }) => name)
  return names.sort((left, right) => (left < right ? -1 : 1))
}

/** The object in a file, or why it cannot be read. */
async function fileAt(path: string): Promise<SourceLine> {
  const info = await lstat(path).catch(() => undefined)
  if (info?.isFile() && info.size > maxLineBytes) return { type: 'unreadable', number: 0, reason: 'too-long' }
  const text = info?.isFile() ? await readFile(path, 'utf8').catch(() => '') : ''
  return sourceLineOfText(text, 0)
}
