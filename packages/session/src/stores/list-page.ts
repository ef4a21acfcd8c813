import type { SessionInfo, SessionPage, SessionQuery } from '../state/session-info.ts'

/** Filters rows, sorts them newest first and returns one page. */
export function pageOf(rows: readonly SessionInfo[], query: SessionQuery): SessionPage {
  const after = query.cursor
  const matching = rows
    .filter((row) => matches(row, query))
    .map((row) => ({ row, key: keyOf(row) }))
    .sort((left, right) => (left.key < right.key ? 1 : -1))
    .filter(({ key }) => after === undefined || key < after)
  const page = matching.slice(0, query.limit ?? defaultLimit)
  const last = page.at(-1)
  const hasMore = last !== undefined && page.length < matching.length
  return { sessions: page.map(({ row }) => row), ...(hasMore && { cursor: last.key }) }
}

const defaultLimit = 100

function keyOf(row: SessionInfo): string {
  return `${row.modified} ${row.id}`
}

function matches(row: SessionInfo, query: SessionQuery): boolean {
  if (query.isVisible && !query.isVisible(row.cwd)) return false
  if (query.cwd !== undefined && row.cwd !== query.cwd) return false
  if (query.status !== undefined && row.status !== query.status) return false
  if (query.text === undefined) return true
  const wanted = query.text.toLowerCase()
  return [row.name, row.firstText, row.cwd].some((text) => text?.toLowerCase().includes(wanted))
}
