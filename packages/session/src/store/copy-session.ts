import { payloadOf, toDisk } from '../line/codec.ts'
import { isObject } from '../util/json.ts'
import { blobsOf } from '../line/large-values.ts'
import { newId } from '../line/ids.ts'
import type { DiskLine } from '../line/line.ts'
import { parseLine } from '../line/parse-line.ts'
import type { SessionReader } from '../log/session-reader.ts'
import { isGap, pathTo, type Node } from '../state/tree.ts'

/** A line for a new log, without seq and checksum, and the blobs that must exist before it. */
interface CopiedLine {
  line: DiskLine
  blobs: string[]
}

export interface Copy {
  lines: AsyncIterable<CopiedLine>
  /** The leaf of the copy. */
  leafId: string | null
}

/**
 * Copies the entries of one path (with their labels and the session's name), or all entries, keeping ids and
 * members. Omits what belongs to running: records, causes, runs, submissions. Skips lost lines.
 */
export async function copyEntries(reader: SessionReader, options: { leafId?: string }): Promise<Copy> {
  await reader.readWhole()
  const { tree, labels, name } = reader.state
  if (options.leafId === undefined) {
    const leaf = reader.state.leaf
    return { lines: linesOf(reader, [...new Set(tree.all())]), leafId: leaf && nearestReadable(leaf) }
  }
  const leaf = await reader.nodeOf(options.leafId)
  const path = pathTo(leaf)
  const notes = notesFor(path, { labels, name, parentId: nearestReadable(leaf) })
  return { lines: concatenate(linesOf(reader, path), notes), leafId: nearestReadable(leaf) }
}

/**
 * What a copy lacks because its making was interrupted. Nothing if it was used since. What came into the source after the copy was begun does
 * not belong to it.
 */
export async function restOfCopy(
  reader: SessionReader,
  { made, leafId }: { made: SessionReader; leafId?: string },
): Promise<Copy> {
  const copy = await copyEntries(reader, leafId === undefined ? {} : { leafId })
  await made.readWhole()
  const { header, tree, labels, name, leaf } = made.state
  const known = reader.state.tree
  const own = [...tree.all()].filter(({ isNote }) => !isNote)
  const target = header?.['parent_entry']
  const end = typeof target === 'string' ? known.get(target) : null
  const isUsed = own.some(({ id }) => !known.get(id)) || leaf?.id !== own.at(-1)?.id
  if (isUsed || end === undefined) return { lines: nothing(), leafId: leaf?.id ?? null }
  const path = new Set(end && pathTo(end).map(({ id }) => id))
  const isOlder = ({ timestamp = '' }: DiskLine): boolean => timestamp <= (header?.timestamp ?? '')
  const lines = filter(copy.lines, ({ line }) => {
    if (tree.get(line.id)) return false
    if (leafId === undefined) return path.has(line.id) || isOlder(line)
    if (line.type === 'session_info') return name === ''
    return line.type !== 'label' || !labels.has(String(payloadOf(line)['target_id']))
  })
  return { lines, leafId: end?.id ?? null }
}

async function* linesOf(reader: SessionReader, nodes: readonly Node[]): AsyncIterable<CopiedLine> {
  for (let start = 0; start < nodes.length; start += slice) {
    const part = nodes.slice(start, start + slice).filter((node) => !isGap(node))
    const lines = await reader.log.readAt(part)
    for (const [index, node] of part.entries()) {
      const parsed = parseLine(lines[index] ?? new Uint8Array())
      if (parsed.type === 'line') yield { line: copyOfLine(parsed.line, node), blobs: blobsOf(parsed.line) }
    }
  }
}

const slice = 256

/** The line without run data; its parent is the nearest copied ancestor. */
export function copyOfLine(source: DiskLine, node: Node): DiskLine {
  const { seq: _seq, crc: _crc, cause: _cause, ...rest } = source
  const line: DiskLine = rest
  const parent = node.parent === 'unread' ? null : node.parent
  line.parent_id = parent && nearestReadable(parent)
  const message = line['message']
  if (line.type === 'message' && isObject(message)) {
    const { submission_id: _submission, run_id: _run, ...said } = message
    line['message'] = said
  }
  return line
}

export function nearestReadable(node: Node): string | null {
  for (let step: Node | null | 'unread' = node; step !== null && step !== 'unread'; step = step.parent) {
    if (!isGap(step)) return step.id
  }
  return null
}

function notesFor(
  path: readonly Node[],
  session: { labels: ReadonlyMap<string, string>; name: string; parentId: string | null },
): CopiedLine[] {
  const note = { timestamp: new Date().toISOString(), parentId: session.parentId }
  const lines: CopiedLine[] = []
  for (const { id } of path) {
    const label = session.labels.get(id)
    if (label === undefined) continue
    lines.push({ line: toDisk({ type: 'label', label: { targetId: id, label } }, { id: newId(), ...note }), blobs: [] })
  }
  if (session.name !== '') {
    const sessionInfo = { name: session.name }
    lines.push({ line: toDisk({ type: 'session_info', sessionInfo }, { id: newId(), ...note }), blobs: [] })
  }
  return lines
}

async function* nothing(): AsyncIterable<never> {}

async function* filter<T>(lines: AsyncIterable<T>, isWanted: (line: T) => boolean): AsyncIterable<T> {
  for await (const line of lines) if (isWanted(line)) yield line
}

async function* concatenate<T>(first: AsyncIterable<T>, second: Iterable<T>): AsyncIterable<T> {
  yield* first
  yield* second
}
