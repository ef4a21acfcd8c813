import { isNote, type DiskLine } from '../line/line.ts'
import type { CheckpointPieces, ReadableLog } from './log-store.ts'
import { parseLine } from '../line/parse-line.ts'
import { checksum } from '../line/seal-line.ts'
import { SessionState, type Damage, type OpenRun, type Placed, type SavedPiece } from '../state/session-state.ts'
import { contextPathTo, nothingInForce, withOwnInForce, type InForce, type Node } from '../state/tree.ts'

/** The pieces to save, and which pieces the checkpoint has then. */
export interface WrittenCheckpoint extends CheckpointPieces {
  saved: SavedPiece[]
}

export interface CheckpointOptions {
  /** The first piece has at least so many nodes, if there are so many. */
  newestNodes?: number
  nodesPerPiece?: number
}

/**
 * Writes the fold at one line, for a quick open. Derived data: if anything is wrong with it, the log is read
 * instead. The first piece holds the whole fold and the newest nodes, enough for most reads of an idle session.
 * The older nodes follow in pieces of equal length, which do not change while the conversation grows.
 */
export function writeCheckpoint(state: SessionState, options: CheckpointOptions = {}): WrittenCheckpoint {
  const { newestNodes = defaultNewestNodes, nodesPerPiece = defaultNodesPerPiece } = options
  const { nodes } = contextPathTo(state.leaf)
  const changed = new Map<number, string>()
  const saved: SavedPiece[] = []
  let start = 0
  for (; start + nodesPerPiece + newestNodes <= nodes.length; start += nodesPerPiece) {
    const piece = state.savedPieces[saved.length]
    const first = nodes[start]?.id ?? ''
    const last = nodes[start + nodesPerPiece - 1]?.id ?? ''
    if (piece?.first === first && piece.last === last) {
      saved.push(piece)
      continue
    }
    const content = seal(saveNodes(nodes.slice(start, start + nodesPerPiece)))
    saved.push({ first, last, sum: content.slice(0, content.indexOf('\n')) })
    changed.set(saved.length, content)
  }
  changed.set(0, seal(bodyOf(state, { older: saved, nodes: nodes.slice(start) })))
  return { count: saved.length + 1, changed, saved }
}

/** More than a screen requests at once; parsing them takes about a millisecond. */
const defaultNewestNodes = 500
/** With the newest nodes, bounds what one save writes to about 200 KB. */
const defaultNodesPerPiece = 1000

function bodyOf(state: SessionState, { older, nodes }: { older: SavedPiece[]; nodes: readonly Node[] }): Body {
  return {
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
    older,
    ...saveNodes(nodes),
  }
}

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

/** Size of what a save of this state writes; decides how often writing it is worthwhile. */
export function checkpointSize(state: SessionState): number {
  const { nodes } = contextPathTo(state.leaf)
  return Math.min(nodes.length, defaultNodesPerPiece) + state.labels.size + state.inbox.messages.length
}

/**
 * Returns the state at the checkpoint's line, or undefined if checkpoint and log do not match. A brief
 * checkpoint is read from the first piece alone: its cost does not depend on the session's length, and older
 * nodes stay unread.
 */
export async function readCheckpoint(
  log: ReadableLog,
  options: { isBrief?: boolean } = {},
): Promise<SessionState | undefined> {
  try {
    const parsed = parsePieces(await log.loadCheckpoint(options), options)
    if (!parsed || parsed.body.hasTwins) return undefined
    const { body } = parsed
    const [bytes] = await log.readAt([body.last])
    const line = bytes && parseLine(bytes)
    if (line?.type !== 'line' || line.crc !== body.last.crc) return undefined
    return restore(parsed)
  } catch {
    return undefined // a folder in its place, or another version: read the log instead
  }
}

const checkpointVersion = 10

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
  /** The pieces with the older nodes, in order. */
  older: SavedPiece[]
}

interface Nodes {
  /** The first node is a root; otherwise the nodes above it are unread. */
  isRooted: boolean
  above: SavedInForce
  nodes: SavedNode[]
}

type SavedNode = [id: string, seq: number, type: string, at: number, size: number, firstKeptId?: string]
type SavedInForce = Record<keyof InForce, SavedNode | null>

interface Parsed {
  body: Body
  older: Nodes[]
  saved: readonly SavedPiece[]
}

/** Parses the first piece, and unless brief the pieces that it names. All of them must be as they were when it was written. */
function parsePieces(pieces: readonly string[], { isBrief }: { isBrief?: boolean }): Parsed | undefined {
  const [first] = pieces
  const text = first === undefined ? undefined : unseal(first)
  const body = text === undefined ? undefined : (JSON.parse(text) as Body)
  if (body?.version !== checkpointVersion) return undefined
  if (isBrief) return { body, older: [], saved: [] }
  const older: Nodes[] = []
  for (const [index, { sum }] of body.older.entries()) {
    const piece = pieces[index + 1]
    const nodes = piece?.startsWith(`${sum}\n`) ? unseal(piece) : undefined
    if (nodes === undefined) return undefined
    older.push(JSON.parse(nodes) as Nodes)
  }
  return { body, older, saved: body.older }
}

/** The line after the one with its checksum. */
function unseal(piece: string): string | undefined {
  const afterSum = piece.indexOf('\n')
  const text = piece.slice(afterSum + 1, -1)
  return afterSum > 0 && piece.endsWith('\n') && checksum(text) === piece.slice(0, afterSum) ? text : undefined
}

function restore({ body, older, saved }: Parsed): SessionState {
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
  state.savedPieces = saved
  const first = older[0] ?? body
  const above = restoreInForce(first.above)
  let parent: Node | null = null
  const topParent = first.isRooted ? null : 'unread'
  const nodes: Node[] = []
  for (const part of [...older, body]) {
    for (const node of part.nodes) {
      const inForce: InForce = parent?.inForce ?? above
      parent = withOwnInForce(restoreNode(node, { parent: parent ?? topParent, inForce }))
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
