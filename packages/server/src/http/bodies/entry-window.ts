import type { entryWindowQuerySchema } from '@tapetree/client/protocol'
import type { Session } from '@tapetree/session'
import type { z } from 'zod'

const defaultCount = 25
/** Each side of a window ends after this many bytes, but has at least one entry. */
const maxSideBytes = 2 * 1024 * 1024

interface EntryLine {
  seq: number
  text: string
}

interface Side {
  lines: EntryLine[]
  hasMore: boolean
}

/** A window of entries around a place, as JSON. Reads only that part of the log; lines keep their bytes. */
export async function entryWindow(session: Session, query: z.infer<typeof entryWindowQuerySchema>): Promise<string> {
  const { before = defaultCount, after = defaultCount, entry_id: entryId } = query
  const { head, leafId } = session
  const seq = entryId === undefined ? (query.seq ?? head.seq + 1) : (await session.getEntry(entryId)).seq
  const place = Math.min(Math.max(seq, 1), head.seq + 1)
  const older = await entriesBefore(session, place, before)
  const newer = await entriesFrom(session, place, after)
  const all = [...older.lines, ...newer.lines]
  const previous = older.hasMore ? (all[0]?.seq ?? place) : null
  const next = newer.hasMore ? (all.at(-1)?.seq ?? place - 1) + 1 : null
  const members = [
    `"entries":[${all.map(({ text }) => text).join(',')}]`,
    ...Object.entries({ leaf_id: leafId, head, previous, next }).map(
      ([name, value]) => `"${name}":${JSON.stringify(value)}`,
    ),
  ]
  return `{${members.join(',')}}`
}

async function entriesFrom(session: Session, place: number, count: number): Promise<Side> {
  const lines: EntryLine[] = []
  let bytes = 0
  for await (const line of entryLines(session, { after: place - 1, before: Infinity })) {
    bytes += line.text.length
    if (lines.length >= count || (bytes > maxSideBytes && lines.length > 0)) return { lines, hasMore: true }
    lines.push(line)
  }
  return { lines, hasMore: false }
}

/** Records lie between entries, so this reads further back until there are enough. */
async function entriesBefore(session: Session, place: number, count: number): Promise<Side> {
  for (let span = (count + 1) * 2; ; span *= 4) {
    const after = Math.max(0, place - 1 - span)
    const found: EntryLine[] = []
    for await (const line of entryLines(session, { after, before: place })) found.push(line)
    if (found.length > count || after === 0) return newestOf(found, count)
  }
}

function newestOf(found: readonly EntryLine[], count: number): Side {
  let first = found.length
  let bytes = 0
  while (first > 0 && found.length - first < count) {
    bytes += found[first - 1]?.text.length ?? 0
    if (bytes > maxSideBytes && first < found.length) break
    first--
  }
  return { lines: found.slice(first), hasMore: first > 0 }
}

async function* entryLines(
  session: Session,
  { after, before }: { after: number; before: number },
): AsyncGenerator<EntryLine, void> {
  for await (const line of session.lines({ after })) {
    if (line.seq >= before) return
    if (line.type === 'line' && 'parent_id' in (JSON.parse(line.text) as object)) yield line
  }
}
