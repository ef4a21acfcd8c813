import type { ReadableLog } from '../../log/log-store.ts'
import { SessionReader } from '../../log/session-reader.ts'
import { sessionInfoOf, type SessionInfo, type SessionPage, type SessionQuery } from '../../state/session-info.ts'
import { inParallel } from '../file/session-index/slices.ts'
import type { Database } from './database.ts'
import { numberAt } from './positions.ts'

/** Where a session is in the database. `key` is a 64-bit number as text. */
export interface StoredSession {
  tenant: string
  id: string
  key: string
  head: number
  lines: number
}

/** The row of a session that has so many lines. */
export interface SessionRow {
  tenant: string
  key: string
  lines: number
  info: SessionInfo
}

/** A page of the list. Rows of sessions that have grown since are made anew first, from their checkpoint on. */
export async function listRows(
  database: Database,
  tenant: string,
  query: SessionQuery,
  openLog: (session: StoredSession) => ReadableLog,
): Promise<SessionPage> {
  await refreshRows(database, tenant, openLog)
  const { place = 'active', cwd, status, text, cursor, limit = defaultLimit, isVisible } = query
  const folders = isVisible && (await visibleFolders(database, { tenant, place }, isVisible))
  const after = cursor === undefined ? undefined : splitCursor(cursor)
  const rows = await database.call<{ info: string }>(
    'select info from tapetree.list_sessions($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
    [
      tenant,
      place,
      cwd === undefined ? null : storable(cwd),
      status ?? null,
      text === undefined ? null : containing(text.toLowerCase()),
      folders?.filter((each) => each !== null) ?? null,
      folders?.includes(null) ?? false,
      after?.modified ?? null,
      after?.id ?? null,
      limit === Infinity ? null : limit + 1,
    ],
  )
  // A session that was created since the rows were made anew has an empty one.
  const made = rows.slice(0, limit).filter(({ info }) => info !== '')
  const sessions = made.map(({ info }) => JSON.parse(info) as SessionInfo)
  const last = sessions.at(-1)
  return { sessions, ...(last && rows.length > limit && { cursor: `${last.modified} ${last.id}` }) }
}

/** How many bytes the lines and blobs of a tenant have. */
export async function storedBytes(
  database: Database,
  { tenant, isVisible }: { tenant: string; isVisible: SessionQuery['isVisible'] },
  openLog: (session: StoredSession) => ReadableLog,
): Promise<number> {
  let folders: (string | null)[] | undefined
  if (isVisible) {
    await refreshRows(database, tenant, openLog)
    const places = await Promise.all(
      (['active', 'archive', 'trash'] as const).map((place) => visibleFolders(database, { tenant, place }, isVisible)),
    )
    folders = [...new Set(places.flat())]
  }
  const [row] = await database.call<{ bytes: string }>('select tapetree.stored_bytes($1, $2, $3) as bytes', [
    tenant,
    folders?.filter((each) => each !== null) ?? null,
    folders?.includes(null) ?? false,
  ])
  return Number(row?.bytes ?? 0)
}

async function refreshRows(
  database: Database,
  tenant: string,
  openLog: (session: StoredSession) => ReadableLog,
): Promise<void> {
  const stale = await database.call<StoredSession>(
    `select key, id, lines, head, $1 as tenant from tapetree.stale_sessions($1, 'row')`,
    [tenant],
  )
  await inParallel(stale, (session) => refreshRow(database, session, openLog(session)))
}

/** The database ignores a row if it knows a later one. */
async function saveRow(database: Database, row: SessionRow): Promise<void> {
  const values = rowValues([row]).map(([value]) => value)
  await database.call('select tapetree.save_row($1, $2, $3, $4, $5, $6, $7, $8)', values)
}

/** The columns of rows: tenants, keys and so on. */
export function rowValues(rows: readonly SessionRow[]): unknown[][] {
  return [
    rows.map(({ tenant }) => tenant),
    rows.map(({ key }) => key),
    rows.map(({ lines }) => lines),
    rows.map(({ info }) => storable(info.modified)),
    rows.map(({ info }) => info.status),
    rows.map(({ info: { cwd } }) => (cwd === undefined ? null : storable(cwd))),
    rows.map(({ info: { name, firstText = '', cwd = '' } }) =>
      [name, firstText, cwd].map((each) => storable(each.toLowerCase())).join(separator),
    ),
    rows.map(({ info }) => JSON.stringify(info)),
  ]
}

/** A text that PostgreSQL can store: it has neither the character 0 nor half a surrogate pair. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

/** A pattern for `LIKE` that matches the text anywhere, character by character. */
export function containing(text: string): string {
  return `%${storable(text).replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
}

async function refreshRow(database: Database, session: StoredSession, log: ReadableLog): Promise<void> {
  const { state } = await SessionReader.open(log)
  const { tenant, key, id } = session
  await saveRow(database, { tenant, key, lines: numberAt(state.end) - 1, info: sessionInfoOf(state, { id }) })
}

/** A query may decide by folder; a tenant has few of them. */
async function visibleFolders(
  database: Database,
  { tenant, place }: { tenant: string; place: string },
  isVisible: (cwd: string | undefined) => boolean,
): Promise<(string | null)[]> {
  const rows = await database.call<{ cwd: string | null }>('select cwd from tapetree.list_folders($1, $2)', [
    tenant,
    place,
  ])
  return rows.map(({ cwd }) => cwd).filter((cwd) => isVisible(cwd ?? undefined))
}

/** An id has no space. */
function splitCursor(cursor: string): { modified: string; id: string } {
  const at = cursor.lastIndexOf(' ')
  return { modified: cursor.slice(0, Math.max(0, at)), id: cursor.slice(at + 1) }
}

const defaultLimit = 100
/** Between the texts of a row; a query that contains it matches nothing. */
const separator = '\u{1}'
