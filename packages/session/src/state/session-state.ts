import { payloadOf, textOr } from '../line/codec.ts'
import { isObject } from '../util/json.ts'
import { isId } from '../line/ids.ts'
import { Inbox } from './inbox.ts'
import { currentFormat, isEntry, isNote, lineKind, type DiskLine, type Position } from '../line/line.ts'
import type { SalvagedHead } from '../line/parse-line.ts'
import type { SessionRecord } from '../line/record.ts'
import { RecentFacts } from './recent-facts.ts'
import { Totals } from './totals.ts'
import { labelOf, nothingInForce, Tree, UnreadError, type Node } from './tree.ts'

/** A range of the log that could not be read, or lines that are missing. */
export interface Damage extends Position {
  /** The seq of the first lost line; for stray bytes, the seq of the line before them. */
  seq: number
  /** Number of lost lines; 0 for stray bytes or a foreign line. */
  count: number
  reason: string
}

export interface Fragment extends Position {
  reason: string
  head: SalvagedHead
}

export interface OpenRun {
  runId: string
  seq: number
}

/** Position of a line, with its seq and checksum. */
export interface Placed extends Position {
  seq: number
  crc: string
}

/** A piece of the stored checkpoint, with its checksum and the ids of its first and its last node. */
export interface SavedPiece {
  first: string
  last: string
  sum: string
}

/**
 * The state of a session, folded line by line. Reading and appending use the same `apply`, so a writer's state
 * equals what a later reader will find.
 */
export class SessionState {
  tree: Tree
  header: DiskLine | undefined
  /** The highest seq accepted or presumed lost; the next line gets the following one. */
  seq = 0
  /** The last accepted line. */
  last: Placed = { seq: 0, at: 0, size: 0, crc: '' }
  /** Offset where reading continues: after everything read so far, readable or not. */
  end = 0
  /** A writer record was read: from here on a line without checksum is damage. */
  sealed = false
  term = 0
  /** Why this build must not write: a newer format, or a critical line of unknown type. */
  newer: string | undefined
  leaf: Node | null = null
  name = ''
  readonly labels = new Map<string, string>()
  readonly inbox = new Inbox()
  readonly permissions = new Permissions()
  readonly facts = new RecentFacts()
  readonly totals = new Totals()
  readonly commands = new RememberedCommands()
  run: OpenRun | null = null
  ended: string | null = null
  damage: Damage[] = []
  /** All damage, including entries no longer listed. */
  damageCount = 0
  /** Damage up to this seq was acknowledged. */
  damageSeenThrough = 0
  /** The pieces of the stored checkpoint that hold nodes of this state, after the first piece. */
  savedPieces: readonly SavedPiece[] = []
  #lastGap: Node | null = null
  /** Lost lines whose ids are unknown: that many unknown parents may be among them. */
  #adoptable = 0

  constructor(options: { isWhole: boolean }) {
    this.tree = new Tree(options)
  }

  get nextSeq(): number {
    return this.seq + 1
  }

  apply(line: DiskLine, placed: Placed): void {
    this.seq = placed.seq
    this.last = placed
    this.facts.take(line, placed.seq)
    if (isEntry(line)) this.#applyEntry(line, placed)
    else this.#applyRecord(line, placed)
    const cause = line['cause']
    if (isObject(cause) && typeof cause['cmd'] === 'string') this.commands.remember(cause['cmd'], placed.seq)
  }

  /**
   * Records that the lines between the last accepted one and `nextSeq` are lost; `fragments` are the bytes in
   * their place.
   */
  lose(fragments: readonly Fragment[], throughSeq: number): void {
    if (!this.tree.isWhole) throw new UnreadError('Damage is only placed by reading the whole log')
    const count = throughSeq - this.seq
    const first = fragments[0]
    const last = fragments.at(-1)
    const at = first?.at ?? this.last.at + this.last.size + 1
    this.report({
      seq: count > 0 ? this.seq + 1 : this.seq,
      count,
      at,
      size: last ? last.at + last.size - at : 0,
      reason: first?.reason ?? 'lines are missing',
    })
    if (count === 0) return
    this.#insertGaps(fragments, at, throughSeq)
    this.inbox.linesLost()
    this.permissions.linesLost()
    this.#adoptable = count
    this.seq = throughSeq
  }

  report(damage: Damage): void {
    this.damageCount++
    if (this.damage.length < maxListedDamage) this.damage.push(damage)
  }

  #applyEntry(line: DiskLine, placed: Placed): void {
    const parent = this.#parentOf(line, placed)
    const { twinCount } = this.tree
    const node = this.tree.add(line, parent, placed)
    if (this.tree.twinCount > twinCount) this.report({ ...placed, count: 0, reason: `a second entry ${line.id}` })
    if (isNote(line)) {
      this.#applyNote(line)
      return
    }
    this.leaf = node
    this.totals.count(line)
    if (line['critical'] === true && lineKind(node.type) !== 'node') this.#needNewer(`entries of type ${line.type}`)
    if (line.type !== 'message') return
    const message = payloadOf(line)
    if (typeof message['submission_id'] === 'string') this.inbox.delivered(message['submission_id'])
    else if (message['role'] === 'user') this.inbox.prompted()
  }

  #applyNote(line: DiskLine): void {
    const label = labelOf(line)
    if (line.type === 'session_info') {
      this.name = textOr(payloadOf(line)['name'], '')
    } else if (label?.label) {
      this.labels.set(label.targetId, label.label)
    } else if (label) {
      this.labels.delete(label.targetId)
    }
  }

  #applyRecord(line: DiskLine, placed: Placed): void {
    const { type } = line
    if (!isRecordType(type)) {
      if (line['critical'] === true) this.#needNewer(`records of type ${type}`)
      return
    }
    const payload = payloadOf(line)
    switch (type) {
      case 'session':
        if (placed.seq === 1) this.header = line
        else this.report({ ...placed, count: 0, reason: 'a second header' })
        return
      case 'writer':
        this.sealed = true
        this.term = Math.max(this.term, Number(payload['term']) || 0)
        if (Number(payload['format']) > currentFormat) this.#needNewer(`format ${String(payload['format'])}`)
        return
      case 'leaf':
        this.leaf = payload['target_id'] === null ? null : this.#resolve(textOr(payload['target_id'], ''), placed)
        return
      case 'submission':
        this.inbox.change(payload)
        return
      case 'run_start':
        this.run = { runId: textOr(payload['run_id'], ''), seq: placed.seq }
        return
      case 'run_end':
        this.run = null
        this.totals.addRun(payload['duration_ms'])
        this.inbox.runEnded(payload['outcome'])
        return
      case 'permission_request':
        this.permissions.requested(payload, { seq: placed.seq, timestamp: textOr(line.timestamp, '') })
        return
      case 'permission_result':
        this.permissions.answered(payload)
        return
      case 'permission_mode':
        this.permissions.modeSet(payload['mode'], payload['reason'])
        return
      case 'usage':
        this.totals.addUsage(payload['tokens'])
        return
      case 'damage':
        this.damageSeenThrough = Number(payload['through_seq']) || 0
        return
      case 'session_end':
        this.ended = textOr(payload['reason'], '')
        return
      case 'bash_start':
        this.totals.begun(line)
        return
      case 'attempt':
      case 'tool_start':
      case 'blocked':
      case 'plan':
      case 'file_read':
      case 'file_write':
      case 'snapshot':
      case 'restore':
      case 'check':
      case 'working_copy':
      case 'workspace':
      case 'workspace_files':
      case 'error':
        return
      default:
        return type satisfies never
    }
  }

  #needNewer(what: string): void {
    this.newer ??= `This session has ${what}, which needs a newer version of tapetree; it is open for reading only.`
  }

  #parentOf(line: DiskLine, placed: Placed): Node | null {
    return line.parent_id === null ? null : this.#resolve(String(line.parent_id), placed)
  }

  /** Resolves an id that no earlier line has. It may belong to a lost line; otherwise inserts a gap for it here. */
  #resolve(id: string, placed: Placed): Node {
    const node = this.tree.get(id)
    if (node) return node
    if (!this.tree.isWhole) throw new UnreadError(`${id} has not been read`)
    this.report({ ...placed, count: 0, reason: `entry ${id} is referenced but missing` })
    if (!this.#lastGap || this.#adoptable === 0) {
      // A leaf record may name a malformed id, and the gap will be a parent.
      return this.#insertGap(this.#freeId(isId(id) ? id : undefined), this.tree.newest, placed)
    }
    this.#adoptable--
    this.tree.alias(id, this.#lastGap)
    return this.#lastGap
  }

  #insertGaps(fragments: readonly Fragment[], at: number, throughSeq: number): void {
    const nodes = fragments.filter((fragment) => !isRecordHead(fragment.head))
    if (nodes.length === 0 && fragments.length > 0) return
    const unreadable: Fragment = { at, size: 0, reason: '', head: {} }
    const [firstNode = unreadable, ...others] = nodes
    for (const { head, ...place } of [firstNode, ...others.filter((other) => other.head.id !== undefined)]) {
      const { id, type = '', parentId } = head
      const parent = parentId == null ? undefined : (this.tree.get(parentId) ?? this.#lastGap ?? undefined)
      const gap = this.#insertGap(this.#freeId(id), parentId === null ? null : (parent ?? this.tree.newest), {
        ...place,
        seq: head.seq !== undefined && head.seq > this.seq && head.seq <= throughSeq ? head.seq : this.seq + 1,
      })
      if (!isNote({ type })) this.leaf = gap
    }
  }

  /** The id of a damaged line may itself be damaged: it never replaces an entry that was read. */
  #freeId(id: string | undefined): string {
    if (id !== undefined && !this.tree.get(id)) return id
    let number = this.seq + 1
    while (this.tree.get(`gap-${number}`)) number++
    return `gap-${number}`
  }

  #insertGap(id: string, parent: Node | null, place: Position & { seq: number }): Node {
    this.#adoptable = 0
    this.#lastGap = this.tree.insert({
      id,
      seq: place.seq,
      type: 'gap',
      parent,
      isNote: false,
      at: place.at,
      size: 0,
      inForce: parent?.inForce ?? nothingInForce,
    })
    return this.#lastGap
  }
}

/** Limits memory for a file with millions of bad lines. */
const maxListedDamage = 1000

function isRecordType(type: string): type is 'session' | Exclude<SessionRecord['type'], 'unknown_record'> {
  const kind = lineKind(type)
  return kind === 'record' || kind === 'header'
}

function isRecordHead(head: SalvagedHead): boolean {
  return head.type !== undefined && head.parentId === undefined && isRecordType(head.type)
}

/** The most recent client commands, so that a resent command is answered and not repeated. */
export class RememberedCommands {
  readonly #seqs = new Map<string, number>()

  remember(command: string, seq: number): void {
    this.#seqs.set(command, seq)
    if (this.#seqs.size < minRemembered * 1.25) return
    for (const oldest of this.#seqs.keys()) {
      if (this.#seqs.size === minRemembered) return
      this.#seqs.delete(oldest)
    }
  }

  /** The seq of the line that the command caused. */
  seqOf(command: string): number | undefined {
    return this.#seqs.get(command)
  }

  toCheckpoint(): unknown {
    return [...this.#seqs]
  }

  restore(saved: unknown): void {
    for (const [command, seq] of saved as [string, number][]) this.#seqs.set(command, seq)
  }
}

const minRemembered = 10_000

/** A permission request without an answer, as its record on disk. */
interface PendingPermission {
  payload: Record<string, unknown>
  seq: number
  timestamp: string
}

/** Permissions folded from the log: pending requests and grants for the session. */
export class Permissions {
  #pending = new Map<string, PendingPermission>()
  #grants: Record<string, unknown>[] = []
  #mode: string | undefined
  #modeReason: string | undefined

  get pending(): PendingPermission[] {
    return [...this.#pending.values()]
  }

  get grants(): readonly Record<string, unknown>[] {
    return this.#grants
  }

  /** The recorded mode; undefined if none was recorded, `unknown` if its record may be lost. */
  get mode(): string | undefined {
    return this.#mode
  }

  /** Why the agent set the recorded mode; undefined if the user chose it. */
  get modeReason(): string | undefined {
    return this.#modeReason
  }

  modeSet(mode: unknown, reason: unknown): void {
    this.#mode = typeof mode === 'string' ? mode : unknownMode
    this.#modeReason = typeof reason === 'string' ? reason : undefined
  }

  /** A lost line may have restricted the mode. */
  linesLost(): void {
    this.#mode = unknownMode
    this.#modeReason = undefined
  }

  requested(payload: Record<string, unknown>, place: { seq: number; timestamp: string }): void {
    const id = payload['request_id']
    if (typeof id === 'string') this.#pending.set(id, { payload, ...place })
  }

  /** The first answer wins; later ones find no pending request. */
  answered(payload: Record<string, unknown>): void {
    const wasPending = this.#pending.delete(String(payload['request_id']))
    if (wasPending && payload['outcome'] === 'allowed' && isObject(payload['grant']))
      this.#grants.push(payload['grant'])
  }

  toCheckpoint(): unknown {
    return { pending: this.pending, grants: this.#grants, mode: this.#mode, modeReason: this.#modeReason }
  }

  restore(saved: unknown): void {
    const { pending, grants, mode, modeReason } = saved as {
      pending: PendingPermission[]
      grants: Record<string, unknown>[]
      mode?: string
      modeReason?: string
    }
    this.#pending = new Map(pending.map((request) => [String(request.payload['request_id']), request]))
    this.#grants = grants
    this.#mode = mode
    this.#modeReason = modeReason
  }
}

/** No agent has a mode of this name, so agents fall back to one that asks. */
const unknownMode = 'unknown'
