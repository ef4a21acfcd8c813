import type { DiskLine } from './line.ts'
import type { ReadableLog } from './log-store.ts'
import { parseLine } from './parse-line.ts'
import { checksum } from './seal-line.ts'
import { SessionState, type Damage, type OpenRun, type Placed } from './session-state.ts'
import { contextPathTo, nothingInForce, type InForce, type Node } from './tree.ts'

/** The fold at one line, for a quick open. Derived: whatever is wrong with it, the log is read instead. */
export function writeCheckpoint(state: SessionState): string {
  const { nodes } = contextPathTo(state.leaf)
  const [first] = nodes
  const isRooted = !first || first.parent === null
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
    isRooted,
    // What the first node sets itself is set again when it is restored, so its own view serves for what is above it.
    above: saveInForce(isRooted ? nothingInForce : first.inForce),
    nodes: nodes.map(saveNode),
  }
  const text = JSON.stringify(body)
  return `${checksum(text)}\n${text}\n`
}

/** How much a checkpoint of this state holds: what decides how often one is worth writing. */
export function checkpointSize(state: SessionState): number {
  return contextPathTo(state.leaf).nodes.length + state.labels.size + state.inbox.messages.length
}

/** The state at the checkpoint's line, if checkpoint and log fit together. Whatever is wrong with it is no failure. */
export async function readCheckpoint(log: ReadableLog): Promise<SessionState | undefined> {
  try {
    const body = parseCheckpoint(await log.loadCheckpoint())
    if (!body || body.hasTwins) return undefined
    const [bytes] = await log.readAt([body.last])
    const parsed = bytes && parseLine(bytes)
    if (parsed?.type !== 'line' || parsed.crc !== body.last.crc) return undefined
    return restore(body)
  } catch {
    return undefined // a folder in its place, a shape of another version: the log is read instead
  }
}

const checkpointVersion = 4

interface Body {
  version: number
  last: Placed
  seq: number
  end: number
  header: DiskLine | undefined
  sealed: boolean
  /** Only the whole log says what an id means that came twice. */
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
  /** The first node has no parent; otherwise what is above it has not been read. */
  isRooted: boolean
  above: SavedInForce
  nodes: SavedNode[]
}

type SavedNode = [id: string, seq: number, type: string, at: number, size: number, firstKeptId?: string]
type SavedInForce = Record<keyof InForce, SavedNode | null>

function parseCheckpoint(content: string | undefined): Body | undefined {
  const newline = content?.indexOf('\n') ?? -1
  if (content === undefined || newline === -1 || !content.endsWith('\n')) return undefined
  const text = content.slice(newline + 1, -1)
  if (checksum(text) !== content.slice(0, newline)) return undefined
  const body = JSON.parse(text) as Body
  return body.version === checkpointVersion ? body : undefined
}

function restore(body: Body): SessionState {
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
  restoreNodes(state, body)
  return state
}

function restoreNodes(state: SessionState, body: Body): void {
  const above = restoreInForce(body.above)
  let parent: Node | null = null
  for (const saved of body.nodes) {
    parent = state.tree.insert({
      ...restoreNode(saved, parent?.inForce ?? above),
      parent: parent ?? (body.isRooted ? null : 'unread'),
    })
  }
  state.leaf = parent
}

function saveNode(node: Node): SavedNode {
  const saved: SavedNode = [node.id, node.seq, node.type, node.at, node.size]
  if (node.firstKeptId !== undefined) saved.push(node.firstKeptId)
  return saved
}

function restoreNode([id, seq, type, at, size, firstKeptId]: SavedNode, inForce: InForce): Node {
  const isNote = type === 'label' || type === 'session_info'
  const node: Node = { id, seq, type, at, size, parent: 'unread', isNote, inForce }
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
  const read = (node: SavedNode | null): Node | null => node && restoreNode(node, nothingInForce)
  return {
    system: read(saved.system),
    model: read(saved.model),
    thinking: read(saved.thinking),
    compaction: read(saved.compaction),
  }
}
