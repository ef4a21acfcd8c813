import { checkLine } from '../line/check-line.ts'
import { payloadOf, toDisk } from '../line/codec.ts'
import type { Header, MessageEntry, NodeEntry, NoteEntry } from '../line/entry.ts'
import { Inbox, type InboxHold, type WaitingMessage } from '../state/inbox.ts'
import type { Line } from '../line/line.ts'
import type { Usage } from '../line/message.ts'
import { PersistentMap } from '../util/persistent-map.ts'
import type {
  AttemptRecord,
  LeafRecord,
  PermissionRequestRecord,
  PlanRecord,
  RunEndRecord,
  RunStartRecord,
  SessionRecord,
} from '../line/record.ts'
import { callsIn, contributionOf } from './transcript-items.ts'
import { addLiveText, type InFlightItem, type LiveText } from './transcript-live.ts'
import { TranscriptPath } from './transcript-path.ts'
import { addGap, addNode, emptyTree, findNode, type TranscriptTree } from './transcript-tree.ts'

/**
 * Everything that a screen draws, folded from the log and its live text. Immutable: reducing returns a new
 * transcript, or the same one if nothing changed. Members, `path.items`, items and parts keep their identity
 * until they change, so a screen redraws only new objects.
 */
export interface Transcript {
  /** The last line applied. */
  readonly seq: number
  readonly header: Header | null
  /** `path.items` are the items from the root to the leaf. */
  readonly path: TranscriptPath
  /** By the id of the entry. */
  readonly labels: PersistentMap<string>
  readonly name: string
  readonly waiting: readonly WaitingMessage[]
  /** Why no queued message is delivered automatically. */
  readonly hold: InboxHold | null
  /** Pending requests, oldest first. */
  readonly permissions: readonly PermissionRequest[]
  readonly run: TranscriptRun | null
  /** How the previous run ended. */
  readonly lastRun: RunEndRecord['runEnd'] | null
  /** Error of the open run or, between runs, of the last one; cleared when the model answers. */
  readonly lastError: TranscriptError | null
  readonly plan: PlanRecord['plan']['items']
  readonly usage: Readonly<Required<Usage>>
  /** By item, in start order. */
  readonly inFlight: ReadonlyMap<string, InFlightItem>
  readonly damage: TranscriptDamage
  /** The reason, once the session has ended. */
  readonly ended: string | null
  /** For the reducer. */
  readonly tree: TranscriptTree
  /** For the reducer: failed attempts and answered calls. Later live text for them is discarded. */
  readonly finished: PersistentMap<true>
}

export type PermissionRequest = PermissionRequestRecord['permissionRequest'] & { seq: number; timestamp: string }

export type TranscriptRun = RunStartRecord['runStart'] & { seq: number; timestamp: string }

export interface TranscriptError {
  seq: number
  timestamp: string
  message: string
  kind?: string
}

export interface TranscriptDamage {
  readonly lostLines: number
  /** The last line lost. Damage is new while this is above `seenThrough`. */
  readonly throughSeq: number
  readonly seenThrough: number
}

export type TranscriptInput =
  | { type: 'line'; line: Line }
  /** `seq` is the first line lost. */
  | { type: 'lost'; seq: number; count: number }
  | LiveText
  /** The lines that follow start from the beginning. */
  | { type: 'reset' }
  /** The session's state at a line, without earlier lines. */
  | { type: 'snapshot'; snapshot: SnapshotInput }

export function emptyTranscript(): Transcript {
  return empty
}

/** Pure. Lines already applied change nothing; lines of unknown types only move `seq`. */
export function reduceTranscript(state: Transcript, input: TranscriptInput): Transcript {
  switch (input.type) {
    case 'line':
      return input.line.seq <= state.seq ? state : takeLine(begin(state, input.line.seq), checkLine(input.line))
    case 'lost':
      return input.seq + input.count - 1 <= state.seq ? state : takeLoss(begin(state, input.seq), input)
    case 'delta':
    case 'partial':
      return takeLiveText(state, input)
    case 'reset':
      return emptyTranscript()
    case 'snapshot':
      return fromSnapshot(input.snapshot)
    default:
      input satisfies never
      return state
  }
}

/** The folded records of the log. */
export interface SnapshotFold {
  header: Header | null
  name: string
  labels: [entryId: string, label: string][]
  waiting: readonly WaitingMessage[]
  hold: InboxHold | null
  permissions: readonly PermissionRequest[]
  run: TranscriptRun | null
  lastRun: Transcript['lastRun']
  lastError: TranscriptError | null
  plan: Transcript['plan']
  usage: Required<Usage>
  damage: TranscriptDamage
  ended: string | null
  /** Calls that were started and have no result yet. */
  running: string[]
}

/** A snapshot with its lines parsed. */
export interface SnapshotInput {
  head: { seq: number }
  lines: readonly Line[]
  leafId: string | null
  fold: SnapshotFold
}

/** Lines above the first one are not loaded; records before `head` are in the fold. */
function fromSnapshot({ lines, fold, head, leafId }: SnapshotInput): Transcript {
  const { labels, running, ...folded } = fold
  let state: Transcript = { ...empty, tree: { ...emptyTree, firstSeq: lines[0]?.seq ?? 2 } }
  for (const line of lines) if ('parentId' in line) state = applyLine(state, checkLine(line))
  const { path } = leafId === null ? { path: state.path.moveTo(null) } : state
  return {
    ...state,
    ...folded,
    seq: head.seq,
    labels: labels.reduce((map, [id, label]) => map.set(id, label), PersistentMap.empty<string>()),
    path: running.reduce((shown, callId) => shown.startCall(callId), path),
  }
}

const empty: Transcript = {
  seq: 0,
  header: null,
  path: TranscriptPath.empty(),
  labels: PersistentMap.empty(),
  name: '',
  waiting: [],
  hold: null,
  permissions: [],
  run: null,
  lastRun: null,
  lastError: null,
  plan: [],
  usage: {
    inputTokens: 0,
    outputTokens: 0,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    totalTokens: 0,
    cost: 0,
  },
  inFlight: new Map(),
  damage: { lostLines: 0, throughSeq: 0, seenThrough: 0 },
  ended: null,
  tree: emptyTree,
  finished: PersistentMap.empty(),
}

function begin(state: Transcript, seq: number): Transcript {
  return state.tree.firstSeq > 0 ? state : { ...state, tree: { ...state.tree, firstSeq: seq } }
}

function takeLine(state: Transcript, line: Line): Transcript {
  return { ...applyLine(landItem(state, line.id), line), seq: line.seq }
}

function applyLine(state: Transcript, line: Line): Transcript {
  if (line.type === 'session') return state.header ? state : { ...state, header: line }
  if (!('parentId' in line)) return takeRecord(state, line)
  return line.type === 'label' || line.type === 'session_info' ? takeNote(state, line) : takeNode(state, line)
}

function takeNode(state: Transcript, entry: NodeEntry): Transcript {
  const { tree, node } = addNode(state.tree, entry, contributionOf(entry))
  let next: Transcript = { ...state, tree, path: state.path.append(node) }
  for (const { callId } of callsIn(node.item)) next = { ...next, finished: next.finished.delete(callId) }
  for (const { callId } of node.results) next = finishItem(next, callId)
  return entry.type === 'message' ? takeMessage(next, entry) : next
}

function takeMessage(state: Transcript, { message }: MessageEntry): Transcript {
  const next = addUsage(state, message.usage)
  const { submissionId } = message
  if (submissionId !== undefined) return changeInbox(next, (inbox) => inbox.delivered(submissionId))
  if (message.role === 'user') return changeInbox(next, (inbox) => inbox.prompted())
  return message.role === 'assistant' && !message.error && next.lastError ? { ...next, lastError: null } : next
}

function takeNote(state: Transcript, note: NoteEntry): Transcript {
  const next = { ...state, tree: addNode(state.tree, note).tree }
  if (note.type === 'session_info') return { ...next, name: note.sessionInfo.name }
  const { targetId, label } = note.label
  const labels =
    typeof label === 'string' && label !== '' ? state.labels.set(targetId, label) : state.labels.delete(targetId)
  return { ...next, labels }
}

function takeRecord(state: Transcript, record: SessionRecord): Transcript {
  const { seq, timestamp } = record
  switch (record.type) {
    case 'leaf':
      return moveLeaf(state, record)
    case 'submission': {
      const { type, submission, id } = record
      const disk = toDisk({ type, submission }, { id, timestamp })
      return changeInbox(state, (inbox) => inbox.change(payloadOf(disk)))
    }
    case 'run_start':
      return { ...state, run: { ...record.runStart, seq, timestamp }, lastError: null }
    case 'run_end':
      return endRun(state, record.runEnd)
    case 'attempt':
      return takeAttempt(state, record)
    case 'tool_start': {
      const { callId } = record.toolStart
      return { ...state, path: state.path.startCall(callId), finished: state.finished.delete(callId) }
    }
    case 'permission_request': {
      const request = { ...record.permissionRequest, seq, timestamp }
      return { ...state, permissions: [...withoutRequest(state, request.requestId), request] }
    }
    case 'permission_result':
      return { ...state, permissions: withoutRequest(state, record.permissionResult.requestId) }
    case 'plan':
      return { ...state, plan: record.plan.items }
    case 'usage':
      return addUsage(state, record.usage.tokens)
    case 'error':
      return { ...state, lastError: { ...record.error, seq, timestamp } }
    case 'damage':
      return { ...state, damage: { ...state.damage, seenThrough: record.damage.throughSeq } }
    case 'session_end':
      return { ...state, ended: record.sessionEnd.reason }
    default:
      record.type satisfies NotFolded
      return state
  }
}

/** Named in a type only: each name in the code is a part of what a page loads. */
type NotFolded =
  | 'writer'
  | 'permission_mode'
  | 'bash_start'
  | 'blocked'
  | 'file_read'
  | 'file_write'
  | 'snapshot'
  | 'restore'
  | 'check'
  | 'working_copy'
  | 'workspace'
  | 'workspace_files'
  | 'unknown_record'

function moveLeaf(state: Transcript, { leaf, seq, timestamp }: LeafRecord): Transcript {
  if (leaf.targetId === null) return { ...state, path: state.path.moveTo(null) }
  const { tree, node } = findNode(state.tree, { id: leaf.targetId, seq, timestamp })
  return { ...state, tree, path: state.path.moveTo(node) }
}

/** Nothing of a run is written after its end, so none of its text is in flight. */
function endRun(state: Transcript, runEnd: RunEndRecord['runEnd']): Transcript {
  const inFlight = [...state.inFlight].filter(([, item]) => item.run !== runEnd.runId)
  const next: Transcript = {
    ...state,
    run: null,
    lastRun: runEnd,
    path: state.path.endRun(),
    inFlight: inFlight.length === state.inFlight.size ? state.inFlight : new Map(inFlight),
  }
  return changeInbox(next, (inbox) => inbox.runEnded(runEnd.outcome))
}

function takeAttempt(state: Transcript, { attempt, seq, timestamp }: AttemptRecord): Transcript {
  const next = finishItem(state, attempt.item)
  return attempt.error ? { ...next, lastError: { ...attempt.error, seq, timestamp } } : next
}

function withoutRequest(state: Transcript, requestId: string): readonly PermissionRequest[] {
  const others = state.permissions.filter((request) => request.requestId !== requestId)
  return others.length === state.permissions.length ? state.permissions : others
}

/** Applies the inbox rules to a copy, so that this state does not change. */
function changeInbox(state: Transcript, change: (inbox: Inbox) => void): Transcript {
  const inbox = new Inbox()
  inbox.restore({ messages: [...state.waiting], hold: state.hold })
  change(inbox)
  const { messages, hold } = inbox
  const isSame =
    messages.length === state.waiting.length && messages.every((each, index) => each === state.waiting[index])
  return {
    ...state,
    waiting: isSame ? state.waiting : messages,
    hold: hold?.reason === state.hold?.reason ? state.hold : hold,
  }
}

/** Ignores counts that are not numbers, as the totals of a list do. */
function addUsage(state: Transcript, added: Usage | undefined): Transcript {
  if (!added) return state
  const usage = { ...state.usage }
  for (const name of usageNames) {
    const count = added[name]
    if (Number.isFinite(count)) usage[name] += count ?? 0
  }
  return usageNames.every((name) => usage[name] === state.usage[name]) ? state : { ...state, usage }
}

const usageNames = Object.keys(empty.usage) as (keyof Usage)[]

function takeLoss(state: Transcript, { seq, count }: { seq: number; count: number }): Transcript {
  const first = Math.max(seq, state.seq + 1)
  const throughSeq = seq + count - 1
  const lines = throughSeq - first + 1
  const { tree, node } = addGap(state.tree, {
    type: 'gap',
    id: `gap-${first}`,
    seq: first,
    timestamp: '',
    gap: { type: 'lost', lines },
  })
  const damage = { ...state.damage, lostLines: state.damage.lostLines + lines, throughSeq }
  const next: Transcript = { ...state, seq: throughSeq, tree, path: state.path.append(node), damage }
  return changeInbox(next, (inbox) => inbox.linesLost())
}

function takeLiveText(state: Transcript, live: LiveText): Transcript {
  if (state.tree.nodes.has(live.item) || state.finished.has(live.item)) return state
  const before = state.inFlight.get(live.item)
  const after = addLiveText(before, live)
  return after === before ? state : { ...state, inFlight: new Map(state.inFlight).set(live.item, after) }
}

function finishItem(state: Transcript, item: string): Transcript {
  return { ...landItem(state, item), finished: state.finished.set(item, true) }
}

/** Removes live text once its line is in the log. */
function landItem(state: Transcript, item: string): Transcript {
  if (!state.inFlight.has(item)) return state
  const inFlight = new Map(state.inFlight)
  inFlight.delete(item)
  return { ...state, inFlight }
}

/**
 * The fold of a transcript without its path. A snapshot with this fold and the newest lines starts at the same
 * state.
 */
export function foldOfTranscript(transcript: Transcript): SnapshotFold {
  const { seq: _, tree: __, inFlight: ___, finished: ____, path, labels, ...fold } = transcript
  return { ...fold, labels: [...labels], running: [...path.running] }
}
