import { DiskBytes } from '../../../packages/session/src/testing/disk-bytes.ts'
import {
  onlyDurable,
  settledFile,
  settledFolder,
  withChange,
  withFileChange,
  type DiskFile,
  type DiskFolder,
  type DiskNode,
  type DiskState,
  type DiskStep,
  type FileChange,
  type NameChange,
} from '../../../packages/session/src/testing/memory-disk.ts'

export interface Crash {
  /** `process`: the page cache is kept. `machine`: what was not synced is there, gone, cut or zero, in any mixture. */
  level: 'process' | 'machine'
  /** The last call had not come back: what was acknowledged after it does not count. */
  isInsideCall: boolean
  /** Zeros stand before bytes that were written: a line may be damaged, not only torn. */
  hasHole: boolean
  state: () => DiskState
  describe: () => string
}

/** Every state that the disk can be found in after a crash right after (or during) the last call. */
export function* crashesAt(step: DiskStep): Iterable<Crash> {
  yield* processCrashes(step)
  yield* machineCrashes(step)
}

/** Cut points inside one write. */
const cutPoints = 16

/**
 * A limit of the model: where a process dies between a failed sync and its repair, the pages that the system has dropped count
 * as dirty again. They are still seen by whoever opens the log next, and nothing that it could ask would tell them apart.
 */
function* processCrashes(step: DiskStep): Iterable<Crash> {
  const state = withoutLoss(step.state)
  yield {
    level: 'process',
    isInsideCall: false,
    hasHole: false,
    state: () => state,
    describe: () => 'process killed',
  }
  const written = step.operation === 'write' ? lastWritten({ ...step, state }) : undefined
  if (!written) return
  const { inode, file, start } = written
  for (const size of cutsOf(file.content, start)) {
    yield {
      level: 'process',
      isInsideCall: true,
      hasHole: false,
      state: () => new Map(state).set(inode, cutLastWrite(file, start, size)),
      describe: () => `process killed inside a write, ${size - start} bytes taken`,
    }
  }
}

function withoutLoss(state: DiskState): DiskState {
  const lossy = [...state].filter(([, node]) => node.type === 'file' && node.pending.some(isLost))
  if (lossy.length === 0) return state
  const nodes = new Map(state)
  for (const [inode, node] of lossy) {
    const file = node as DiskFile
    nodes.set(inode, {
      ...file,
      pending: file.pending.map(({ ...change }) => (isLost(change) ? { ...change, isLost: false } : change)),
    })
  }
  return nodes
}

function isLost(change: FileChange | NameChange): boolean {
  return 'isLost' in change && change.isLost
}

function cutLastWrite(file: DiskFile, start: number, size: number): DiskFile {
  const pending = file.pending.slice(0, -1)
  const bytes = file.content.view.subarray(start, size)
  if (bytes.length > 0) pending.push({ type: 'write', at: start, bytes })
  return { ...file, content: file.content.cut(size), pending }
}

function lastWritten({ state, inode = 0 }: DiskStep): { inode: number; file: DiskFile; start: number } | undefined {
  const file = state.get(inode)
  const last = file?.type === 'file' ? file.pending.at(-1) : undefined
  return file?.type === 'file' && last?.type === 'write' ? { inode, file, start: last.at } : undefined
}

/** Sizes from the start of the last write to just before its end, the first and the last byte among them. */
function cutsOf(content: DiskBytes, start: number): number[] {
  const length = content.size - start
  const cuts = new Set<number>()
  for (let index = 0; index < cutPoints - 2; index++) cuts.add(Math.floor((index * length) / (cutPoints - 2)))
  cuts.add(1).add(length - 1)
  return [...cuts].filter((cut) => cut < length).map((cut) => start + cut)
}

/** One way in which a file or a folder can be found. The first two of a list are: nothing of it, all of it. */
interface Outcome {
  node: DiskNode
  label: string
  hasHole?: boolean
}

interface Dirty {
  inode: number
  type: DiskNode['type']
  outcomes: Outcome[]
}

const nothing = 0
const everything = 1

/**
 * Every outcome of what the last call touched and of every log, each together with the others all gone, all there, only names,
 * only contents: files and folders reach the disk in any order.
 */
function* machineCrashes(step: DiskStep): Iterable<Crash> {
  const dirty = dirtyNodes(step)
  const moment = { base: onlyDurable(step.state), dirty, moves: movesIn(step.state) }
  const seen = new Set<string>()
  for (const background of backgrounds) {
    const rest = dirty.map(({ type }) => background[type])
    for (const [focus, { outcomes }] of dirty.entries()) {
      for (let chosen = 0; chosen < outcomes.length; chosen++) {
        const choice = rest.with(focus, chosen)
        const key = choice.join()
        if (seen.has(key)) continue
        seen.add(key)
        yield machineCrash(moment, choice)
      }
    }
  }
  if (dirty.length === 0) yield machineCrash(moment, [])
}

const backgrounds = [
  { file: nothing, folder: nothing },
  { file: everything, folder: everything },
  { file: nothing, folder: everything },
  { file: everything, folder: nothing },
]

interface Moment {
  base: DiskState
  dirty: readonly Dirty[]
  moves: readonly Move[]
}

function machineCrash({ base, dirty, moves }: Moment, choice: readonly number[]): Crash {
  const outcomes = dirty.map((node, index) => node.outcomes[choice[index] as number] as Outcome)
  return {
    level: 'machine',
    isInsideCall: false,
    hasHole: outcomes.some((outcome) => outcome.hasHole === true),
    state: () => {
      const nodes = new Map(base)
      for (const [index, { inode }] of dirty.entries()) nodes.set(inode, (outcomes[index] as Outcome).node)
      undoHalfMoves(nodes, moves)
      return nodes
    },
    describe: () => {
      const labels = dirty.map(({ inode }, index) => `inode ${inode} ${outcomes[index]?.label}`)
      return `power cut: ${labels.join('; ') || 'everything synced'}`
    },
  }
}

function dirtyNodes(step: DiskStep): Dirty[] {
  const { state } = step
  const linked = linkedInodes(state)
  const dirty: Dirty[] = []
  for (const [inode, node] of state) {
    if (node.pending.length === 0 || !linked.has(inode)) continue
    const isDetailed = inode === step.inode || linked.get(inode) === true
    if (node.type === 'folder') dirty.push({ inode, type: 'folder', outcomes: outcomesOfFolder(node) })
    else dirty.push({ inode, type: 'file', outcomes: isDetailed ? outcomesOfFile(node) : simpleOutcomes(node) })
  }
  return dirty
}

/** What some name leads to, now or on the disk; true for a log. */
function linkedInodes(state: DiskState): Map<number, boolean> {
  const linked = new Map<number, boolean>()
  for (const node of state.values()) {
    if (node.type !== 'folder') continue
    for (const names of [node.names, node.durable]) {
      for (const [name, inode] of names) linked.set(inode, name === 'events.jsonl')
    }
  }
  return linked
}

function simpleOutcomes(file: DiskFile): Outcome[] {
  return [
    { node: settledFile(file.durable), label: 'dropped' },
    { node: settledFile(file.content), label: 'kept' },
  ]
}

function outcomesOfFile(file: DiskFile): Outcome[] {
  const outcomes = simpleOutcomes(file)
  const add = (content: DiskBytes, label: string, hasHole = false): void => {
    outcomes.push({ node: settledFile(content), label, hasHole })
  }
  for (let count = 1; count < file.pending.length; count++) {
    add(file.pending.slice(0, count).reduce(withFileChange, file.durable), `the first ${count} changes kept`)
  }
  const last = file.pending.at(-1)
  if (last?.type !== 'write') return outcomes
  const before = file.pending.slice(0, -1).reduce(withFileChange, file.durable)
  const all = withFileChange(before, last)
  for (const cut of cutsOf(all, last.at)) {
    if (cut > last.at) add(all.cut(cut), `kept to ${cut} of ${all.size}`)
    add(all.blank(cut, all.size), `zeros from ${cut} of ${all.size}`)
    if (cut > last.at) add(all.blank(last.at, cut), `zeros from ${last.at} to ${cut} of ${all.size}`, true)
  }
  for (const content of staleMixtures(file, last)) add(content, 'bytes of an earlier write to the same place', true)
  if (before.size > file.durable.size) {
    add(all.blank(file.durable.size, before.size), 'the last write kept, zeros before it', true)
    add(all.blank(file.durable.size, all.size), 'zeros for all that was written')
  }
  return outcomes
}

/** A write that was cut off and written over may show through: the new bytes first, or the old ones. */
function staleMixtures(file: DiskFile, last: FileChange & { type: 'write' }): DiskBytes[] {
  const older = file.pending.slice(0, -1).findLast((change) => change.type === 'write' && change.at === last.at)
  if (older?.type !== 'write') return []
  const before = file.content.view.subarray(0, last.at)
  return cutsOf(file.content, last.at).flatMap((size) => {
    const cut = size - last.at
    return [
      DiskBytes.of(Buffer.concat([before, last.bytes.subarray(0, cut), older.bytes.subarray(cut)])),
      DiskBytes.of(Buffer.concat([before, older.bytes.subarray(0, cut), last.bytes.subarray(cut)])),
    ]
  })
}

function outcomesOfFolder(folder: DiskFolder): Outcome[] {
  const { durable, names, pending } = folder
  const outcomes: Outcome[] = [
    { node: settledFolder(durable), label: 'names dropped' },
    { node: settledFolder(names), label: 'names kept' },
  ]
  for (let count = 1; count < pending.length; count++) {
    const some = pending.slice(0, count).reduce(withChange, durable)
    outcomes.push({ node: settledFolder(some), label: `the first ${count} names kept` })
  }
  const last = pending.at(-1)
  if (last && pending.length > 1) {
    outcomes.push({ node: settledFolder(withChange(durable, last)), label: 'only the last name kept' })
  }
  return outcomes
}

/** A rename from one folder to another, of which each has its half. */
interface Move {
  from: number
  name: string
  to: number
  inode: number
}

function movesIn(state: DiskState): Move[] {
  const moves: Move[] = []
  for (const [from, folder] of state) {
    if (folder.type !== 'folder') continue
    for (const { remove, moved } of folder.pending) {
      if (remove !== undefined && moved) moves.push({ from, name: remove, to: moved.folder, inode: moved.inode })
    }
  }
  return moves
}

/** Such a rename is atomic: the old name does not go before the new one is there. */
function undoHalfMoves(nodes: Map<number, DiskNode>, moves: readonly Move[]): void {
  for (const { from, name, to, inode } of moves) {
    const target = nodes.get(to) as DiskFolder
    if ([...target.names.values()].includes(inode)) continue
    const source = nodes.get(from) as DiskFolder
    nodes.set(from, settledFolder(withChange(source.names, { add: { name, inode } })))
  }
}
