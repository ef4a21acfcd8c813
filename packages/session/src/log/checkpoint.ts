import { isNote, type DiskLine } from '../line/line.ts'
import type { ReadableLog } from './log-store.ts'
import { parseLine } from '../line/parse-line.ts'
import { checksum } from '../line/seal-line.ts'
import { SessionState, type Damage, type OpenRun, type Placed } from '../state/session-state.ts'
import { contextPathTo, nothingInForce, withOwnInForce, type InForce, type Node } from '../state/tree.ts'

/**
 * Writes the fold at one line, for a quick open. Derived data: if anything is wrong with it, the log is read
 * instead. The first part holds the whole fold and the newest nodes, enough for most reads of an idle session.
 * The second part holds the older nodes.
 */
export function writeCheckpoint(state: SessionState, options: { newestNodes?: number } = {}): string {
  const { newestNodes = defaultNewestNodes } = options
  const { nodes } = contextPathTo(state.leaf)
  const older = nodes.slice(0, -newestNodes)
  const body: Body = {
    version: checkpointVersion,
    last: state.last,
    seq: state.seq,
    end: state.end,
    header: state.header,
    sealed: state.sealed,
    hasTwins: state.tree.hasTwins,
    term: state.term,
    newer: state.newer,
    name: state.name,
    labels: [...state.labels],
    inbox: state.inbox.toCheckpoint(),
    permissions: state.permissions.toCheckpoint(),
    facts: state.facts.toCheckpoint(),
    totals: state.totals.toCheckpoint(),
    commands: state.commands.toCheckpoint(),
    run: state.run,
    ended: state.ended,
    damage: state.damage,
    damageCount: state.damageCount,
    damageSeenThrough: state.damageSeenThrough,
    ...saveNodes(nodes.slice(-newestNodes)),
  }
  return seal(body) + (older.length > 0 ? seal(saveNodes(older)) : '')
}

/** More than a screen requests at once; parsing them takes about a millisecond. */
const defaultNewestNodes = 1000

function seal(part: Body | Nodes): string {
  const text = JSON.stringify(part)
  return `${checksum(text)}\n${text}\n`
}

function saveNodes(nodes: readonly Node[]): Nodes {
  const [first] = nodes
  const isRooted = !first || first.parent === null
  // Restoring the first node sets its own values again, so its view can stand for everything above it.
  return { isRooted, above: saveInForce(isRooted ? nothingInForce : first.inForce), nodes: nodes.map(saveNode) }
}

/** Size of a checkpoint of this state; decides how often writing one is worthwhile. */
export function checkpointSize(state: SessionState): number {
  return contextPathTo(state.leaf).nodes.length + state.labels.size + state.inbox.messages.length
}

/**
 * Returns the state at the checkpoint's line, or undefined if checkpoint and log do not match. A brief
 * checkpoint is read from the first part alone: its cost does not depend on the session's length, and older
 * nodes stay unread.
 */
export async function readCheckpoint(
  log: ReadableLog,
  options: { isBrief?: boolean } = {},
): Promise<SessionState | undefined> {
  try {
    const parts = options.isBrief
      ? (parseParts(await log.loadCheckpoint({ maxBytes: maxFirstPartBytes })) ??
        parseParts(await log.loadCheckpoint()))
      : parseParts(await log.loadCheckpoint(), { isWhole: true })
    if (!parts || parts.body.hasTwins) return undefined
    const { body } = parts
    const [bytes] = await log.readAt([body.last])
    const parsed = bytes && parseLine(bytes)
    if (parsed?.type !== 'line' || parsed.crc !== body.last.crc) return undefined
    return restore(body, parts.older)
  } catch {
    return undefined // a folder in its place, or another version: read the log instead
  }
}

const checkpointVersion = 7
/** If the first part is longer than this, the whole checkpoint is loaded. */
const maxFirstPartBytes = 128 * 1024

interface Body extends Nodes {
  version: number
  last: Placed
  seq: number
  end: number
  header: DiskLine | undefined
  sealed: boolean
  /** An id occurred twice, so only the whole log can resolve ids. */
  hasTwins: boolean
  term: number
  newer: string | undefined
  name: string
  labels: [string, string][]
  inbox: unknown
  permissions: unknown
  facts: unknown
  totals: unknown
  commands: unknown
  run: OpenRun | null
  ended: string | null
  damage: Damage[]
  damageCount: number
  damageSeenThrough: number
}

interface Nodes {
  /** The first node is a root; otherwise the nodes above it are unread. */
  isRooted: boolean
  above: SavedInForce
  nodes: SavedNode[]
}

type SavedNode = [id: string, seq: number, type: string, at: number, size: number, firstKeptId?: string]
type SavedInForce = Record<keyof InForce, SavedNode | null>

interface Parts {
  body: Body
  older: Nodes | undefined
}

/** Parses only the first part unless `isWhole` is set; then every part must be valid. */
function parseParts(content: string | undefined, options: { isWhole?: boolean } = {}): Parts | undefined {
  if (content === undefined) return undefined
  const first = unseal(content, 0)
  const body = first && (JSON.parse(first.text) as Body)
  if (body?.version !== checkpointVersion) return undefined
  if (!options.isWhole || first?.end === content.length) return { body, older: undefined }
  const second = unseal(content, first?.end ?? 0)
  if (second?.end !== content.length) return undefined
  return { body, older: JSON.parse(second.text) as Nodes }
}

/** A line with the checksum, followed by the line that it covers. */
function unseal(content: string, start: number): { text: string; end: number } | undefined {
  const afterSum = content.indexOf('\n', start)
  const afterText = content.indexOf('\n', afterSum + 1)
  if (afterSum === -1 || afterText === -1) return undefined
  const text = content.slice(afterSum + 1, afterText)
  return checksum(text) === content.slice(start, afterSum) ? { text, end: afterText + 1 } : undefined
}

function restore(body: Body, older: Nodes | undefined): SessionState {
  const state = new SessionState({ isWhole: false })
  state.seq = body.seq
  state.end = body.end
  state.last = body.last
  state.header = body.header
  state.sealed = body.sealed
  state.term = body.term
  state.newer = body.newer
  state.name = body.name
  for (const [target, label] of body.labels) state.labels.set(target, label)
  state.inbox.restore(body.inbox)
  state.permissions.restore(body.permissions)
  state.facts.restore(body.facts)
  state.totals.restore(body.totals)
  state.commands.restore(body.commands)
  state.run = body.run
  state.ended = body.ended
  state.damage = body.damage
  state.damageCount = body.damageCount
  state.damageSeenThrough = body.damageSeenThrough
  const first = older ?? body
  const above = restoreInForce(first.above)
  let parent: Node | null = null
  const topParent = first.isRooted ? null : 'unread'
  const nodes: Node[] = []
  for (const part of [older?.nodes ?? [], body.nodes]) {
    for (const saved of part) {
      const inForce: InForce = parent?.inForce ?? above
      parent = withOwnInForce(restoreNode(saved, { parent: parent ?? topParent, inForce }))
      nodes.push(parent)
    }
  }
  state.tree.restore(nodes)
  state.leaf = parent
  return state
}

function saveNode(node: Node): SavedNode {
  const saved: SavedNode = [node.id, node.seq, node.type, node.at, node.size]
  if (node.firstKeptId !== undefined) saved.push(node.firstKeptId)
  return saved
}

function restoreNode(
  [id, seq, type, at, size, firstKeptId]: SavedNode,
  { parent, inForce }: Pick<Node, 'parent' | 'inForce'>,
): Node {
  const node: Node = { id, seq, type, at, size, parent, isNote: isNote({ type }), inForce }
  return firstKeptId === undefined ? node : { ...node, firstKeptId }
}

function saveInForce(inForce: InForce): SavedInForce {
  const save = (node: Node | null): SavedNode | null => node && saveNode(node)
  return {
    system: save(inForce.system),
    model: save(inForce.model),
    thinking: save(inForce.thinking),
    compaction: save(inForce.compaction),
  }
}

function restoreInForce(saved: SavedInForce): InForce {
  const read = (node: SavedNode | null): Node | null =>
    node && restoreNode(node, { parent: 'unread', inForce: nothingInForce })
  return {
    system: read(saved.system),
    model: read(saved.model),
    thinking: read(saved.thinking),
    compaction: read(saved.compaction),
  }
}
