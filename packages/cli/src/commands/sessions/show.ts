import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import { fromDisk, toDisk, type DiskLine, type Entry } from '@tapetree/session/format'
import type { TreeNode } from '@tapetree/session/view'
import { ageOf, costText, counted, elapsedText } from '../../text/amounts.ts'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { segmentsOf, type Segment } from '../../sessions/segments.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import { describeEntry } from '../../text/describe-entry.ts'
import { fitText } from '../../text/display-width.ts'

const defaultWidth = 120

export async function runSessionsShow(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  using progress = new Progress(io.stderr, 'Reading the session')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    const tree = await session.getTree()
    const subagents = await subagentsOf(session)
    const spent = await subagentTotals(store, subagents)
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, {
        ...shown(session, tree),
        ...(spent.count > 0 && { subagents: spent }),
        ...(flag(invocation, 'tree') && { tree: treeJson(tree, subagents) }),
      })
      return exitCodes.ok
    }
    await paged(io, async (output) => {
      await write(output, description(session, { tree, spent }))
      if (!flag(invocation, 'tree')) return
      await write(output, '\n')
      const { leafId } = session
      const width = output.columns ?? defaultWidth
      for (const line of treeLines(tree, { leafId, subagents, width })) await write(output, `${line}\n`)
    })
    return exitCodes.ok
  })
}

function shown(session: Session, tree: readonly TreeNode[]): Record<string, unknown> {
  const [path, ...branches] = segmentsOf(tree, session.leafId)
  return snakeNames({
    ...session.info,
    leafId: session.leafId,
    head: session.head,
    totals: session.totals,
    pathLength: path?.nodes.length ?? 0,
    branches: branches.map(({ from, nodes }) => ({ from: from?.entry.id ?? null, entries: nodes.length })),
    labels: Object.fromEntries(session.getLabels()),
    openRun: session.openRun,
    damage: session.damage,
  }) as Record<string, unknown>
}

function description(session: Session, { tree, spent }: { tree: readonly TreeNode[]; spent: SubagentTotals }): string {
  const { id, name, cwd, parentSession, created, modified, status, messageCount, queueLength } = session.info
  const { turns, toolCalls, runMs, tokens, cost } = session.totals
  const [path, ...branches] = segmentsOf(tree, session.leafId)
  const now = Date.now()
  const rows: [string, string][] = [
    ['session', id],
    ['name', name],
    ['folder', cwd ?? ''],
    ['forked from', parentSession ?? ''],
    ['created', created],
    ['last message', `${modified} (${ageOf(modified, now)})`],
    ['status', queueLength > 0 ? `${status}, ${queueLength} waiting` : status],
    ['messages', `${messageCount}, including ${counted(turns, 'answer')} with ${counted(toolCalls, 'tool call')}`],
    ['run time', elapsedText(runMs)],
    ['tokens', spentText({ tokens, cost }, spent)],
    ['path', counted(path?.nodes.length ?? 0, 'entry', 'entries')],
    ['branches', branches.length === 0 ? 'none' : branchText(branches)],
    ['labels', [...session.getLabels().values()].join(', ')],
    ['stored in', session.path ?? ''],
  ]
  const lines = rows
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `${key.padEnd(13)} ${harmlessLine(value)}\n`)
  return lines.join('') + damageText(session)
}

/** Includes the usage of subagents and names their share. */
function spentText(own: { tokens: number; cost: number }, { count, tokens, cost }: SubagentTotals): string {
  const all = `${own.tokens + tokens}, ${costText(own.cost + cost)}`
  return count === 0 ? all : `${all}; of these ${tokens}, ${costText(cost)} by ${counted(count, 'subagent')}`
}

function branchText(branches: readonly { from: TreeNode | null; nodes: readonly TreeNode[] }[]): string {
  const places = branches.map(({ from, nodes }) => `at ${from?.entry.seq ?? 'the root'} (${nodes.length})`)
  const more = places.length > 10 ? ` and ${places.length - 10} more` : ''
  return `${branches.length}: ${places.slice(0, 10).join(', ')}${more}`
}

function damageText({ damage, id }: Session): string {
  if (damage.length === 0) return ''
  const isNew = damage.some((each) => each.isNew)
  const next = isNew ? `tapetree log verify ${id}` : `acknowledged; tapetree log verify ${id}`
  return `damage        ${counted(damage.length, 'place')} (${next})\n`
}

interface SubagentTotals {
  count: number
  tokens: number
  /** In US dollars. */
  cost: number
}

/** The usage of subagents. A missing or unreadable session counts as zero. */
async function subagentTotals(
  store: SessionStore,
  subagents: ReadonlyMap<string, readonly string[]>,
): Promise<SubagentTotals> {
  const totals = { count: 0, tokens: 0, cost: 0 }
  for (const id of new Set([...subagents.values()].flat())) {
    totals.count++
    try {
      await using session = await store.open(id, { readOnly: true })
      totals.tokens += session.totals.tokens
      totals.cost += session.totals.cost
    } catch (error) {
      if (!(error instanceof SessionError)) throw error
    }
  }
  return totals
}

/** The sessions of this session's subagents, by the entry that called them. */
async function subagentsOf(session: Session): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for await (const stored of session.lines()) {
    if (stored.type === 'lost' || !stored.text.includes('"child_session"')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (line.type !== 'tool_start') continue
    // The codec does not check values, and the line may come from anywhere.
    const { entryId = '', childSession } = (line.toolStart as Partial<typeof line.toolStart> | undefined) ?? {}
    if (typeof childSession !== 'string') continue
    const children = found.get(entryId) ?? []
    found.set(entryId, children.includes(childSession) ? children : [...children, childSession])
  }
  return found
}

interface TreeRow {
  /** With the member names of the log. */
  entry: Record<string, unknown>
  parent_id: string | null
  label?: string
  subagents?: readonly string[]
}

/** The tree as a list, parents before children: nested objects of a long session are too deep for most JSON parsers. */
function treeJson(roots: readonly TreeNode[], subagents: ReadonlyMap<string, readonly string[]>): TreeRow[] {
  const rows: TreeRow[] = []
  const open = roots.map((node) => ({ node, parentId: null as string | null })).toReversed()
  for (let step = open.pop(); step; step = open.pop()) {
    const { node, parentId } = step
    const { entry, label, children } = node
    const sessions = subagents.get(entry.id)
    rows.push({
      entry: entryOnDisk(entry),
      parent_id: parentId,
      ...(label !== undefined && { label }),
      ...(sessions && { subagents: sessions }),
    })
    for (const child of children.toReversed()) open.push({ node: child, parentId: entry.id })
  }
  return rows
}

function entryOnDisk(entry: Entry): Record<string, unknown> {
  return { seq: entry.seq, ...toDisk(entry as unknown as { type: string }, entry) }
}

interface TreeDrawing {
  leafId: string | null
  /** The sessions of subagents, by the entry that called them. */
  subagents: ReadonlyMap<string, readonly string[]>
  width: number
}

/** The tree, one line per entry: the current path is at the left, branches are indented. */
export function* treeLines(roots: readonly TreeNode[], drawing: TreeDrawing): Generator<string> {
  const segments = segmentsOf(roots, drawing.leafId)
  const branches = Map.groupBy(segments.slice(1), ({ from }) => from)
  const [path] = segments
  const open: Frame[] = []
  const push = (from: TreeNode | null, prefix: string): void => {
    for (const segment of (branches.get(from) ?? []).toReversed()) {
      open.push({ segment, index: 0, lead: `${prefix}├─ `, prefix: `${prefix}│  ` })
    }
  }
  if (path) open.push({ segment: path, index: 0, lead: '', prefix: '' })
  push(null, '')
  for (let frame = open.at(-1); frame; frame = open.at(-1)) {
    const node = frame.segment.nodes[frame.index]
    if (!node) {
      open.pop()
      continue
    }
    yield `${frame.index === 0 ? frame.lead : frame.prefix}${lineOf(node, frame, drawing)}`
    frame.index++
    push(node, frame.prefix)
  }
}

interface Frame {
  segment: Segment
  index: number
  /** The indentation of its first line, and of the others. */
  lead: string
  prefix: string
}

function lineOf({ entry, label }: TreeNode, { segment, prefix }: Frame, drawing: TreeDrawing): string {
  const { kind, words } = describeEntry(entry)
  const mark = entry.id === drawing.leafId ? '◉' : segment.number === 0 ? '●' : '○'
  const tags = [
    ...(label === undefined ? [] : [`[${harmlessLine(label)}]`]),
    ...(drawing.subagents.get(entry.id) ?? []).map((id) => `(subagent ${id})`),
  ]
  const start = [`${mark} ${entry.seq}`, ...tags, kind].join(' ')
  const columns = Math.max(minColumns, drawing.width - prefix.length)
  // Cuts roughly first: sanitizing a long text is slow.
  return fitText(`${start}  ${harmlessLine(words.slice(0, columns * 16))}`, columns)
}

const minColumns = 20
