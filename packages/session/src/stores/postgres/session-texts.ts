import type { ReadableLog } from '../../log/log-store.ts'
import { payloadOf } from '../../line/codec.ts'
import { textOfLine } from '../../line/message-text.ts'
import { parseLine } from '../../line/parse-line.ts'
import type { SearchHit, SearchQuery } from '../../state/session-info.ts'
import { findWords, fold, searchPieces, termsOf, wordsOf } from '../file/session-index/search-text.ts'
import { inParallel } from '../file/session-index/slices.ts'
import { defaultHits, msOf, rangesOf } from '../search-hits.ts'
import type { Database } from './database.ts'
import { numberAt, positionOf } from './positions.ts'
import { containing, storable, type StoredSession } from './session-rows.ts'

/** Searches all texts of a tenant, after those of new lines were added. */
export async function searchTexts(
  database: Database,
  tenant: string,
  query: SearchQuery,
  openLog: (session: StoredSession) => ReadableLog,
): Promise<SearchHit[]> {
  const { text, place = 'active', limit = defaultHits, among, roles, since, until, after } = query
  const words = wordsOf(text)
  if (words.length === 0 || limit < 1) return []
  await addTexts(database, tenant, openLog)
  const { terms, parts } = searchPieces(words)
  const rows = await database.call<Found>(
    `select id, seq, role, line from tapetree.search_texts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    [
      tenant,
      place,
      words.map(containing),
      terms.length === 0 ? null : terms.map(quoted).join(' & '),
      among ? [...among] : null,
      roles ?? null,
      since === undefined ? null : msOf(since),
      until === undefined ? null : msOf(until),
      after === undefined ? null : msOf(after.timestamp),
      after?.sessionId ?? null,
      after?.seq ?? null,
      Math.min(limit, maxHits),
      parts.map(containing),
    ],
  )
  return rows.flatMap((row) => hitOf(row, words) ?? [])
}

interface Found {
  id: string
  seq: number
  role: string
  line: string
}

/** The database has compared the texts already; this finds the place in the text to show. */
function hitOf({ id, seq, role, line }: Found, words: readonly string[]): SearchHit | undefined {
  const parsed = parseLine(Buffer.from(line))
  if (parsed.type !== 'line') return undefined
  const { timestamp = '', id: entryId } = parsed.line
  const snippet = findWords(textOfLine(parsed.line), words)
  if (snippet === undefined) return undefined
  return { sessionId: id, entryId, seq, timestamp, role, snippet, matches: rangesOf(snippet, words, fold) }
}

function quoted({ term, isPrefix }: { term: string; isPrefix: boolean }): string {
  return `'${term.replaceAll(/['\\]/g, '$&$&')}'${isPrefix ? ':*' : ''}`
}

async function addTexts(
  database: Database,
  tenant: string,
  openLog: (session: StoredSession) => ReadableLog,
): Promise<void> {
  const stale = await database.call<StoredSession & { textLines: number }>(
    `select key, id, lines, head, text_lines as "textLines", $1 as tenant from tapetree.stale_sessions($1, 'text')`,
    [tenant],
  )
  await inParallel(stale, async (session) => {
    let from = session.textLines
    for await (const batch of openLog(session).lines(positionOf(from + 1, 0).at)) {
      const texts = batch.flatMap(({ at, bytes }) => textOf(numberAt(at), bytes) ?? [])
      const through = from + batch.length
      await database.call('select tapetree.save_texts($1, $2, $3, $4, $5)', [
        tenant,
        session.key,
        from,
        through,
        JSON.stringify(texts),
      ])
      from = through
    }
  })
}

interface EntryText {
  n: number
  seq: number
  ms: number
  role: string
  folded: string
  terms: string[]
}

function textOf(number: number, bytes: Uint8Array): EntryText | undefined {
  const parsed = parseLine(bytes)
  if (parsed.type !== 'line') return undefined
  const { line } = parsed
  const folded = storable(fold(textOfLine(line).slice(0, maxTextLength)))
  if (folded === '') return undefined
  const { words, pairs } = termsOf(folded)
  const role = line.type === 'message' ? String(payloadOf(line)['role']) : line.type
  const terms = [...words, ...pairs]
  return { n: number, seq: line.seq ?? number, ms: msOf(line.timestamp), role: storable(role), folded, terms }
}

/** Text beyond this length is not searched; our own lines are shorter. */
const maxTextLength = 256 * 1024
/** A search returns no more hits than this, whatever its limit is. */
const maxHits = 100_000
