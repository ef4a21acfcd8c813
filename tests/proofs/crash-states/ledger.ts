import type { Durability, Place } from '@tapetree/session'
import { parseLine } from '../../../packages/session/src/line/parse-line.ts'
import { pathsInFolder, type LogPaths } from '../../../packages/session/src/stores/file/log-paths.ts'
import {
  inodeAt,
  type DiskFile,
  type DiskStep,
  type MemoryDisk,
} from '../../../packages/session/src/testing/memory-disk.ts'
import type { Crash } from './crashes-at.ts'

/** Something that a caller was told of a session. */
type Told = { sessionId: string } & (
  | { type: 'line'; id: string; level: Durability }
  | { type: 'blob'; sha256: string }
  /** Bytes behind the last newline, found at the start: never acknowledged, and still not thrown away. */
  | { type: 'torn'; bytes: Uint8Array }
  /** The session is in at least one of these places and in no other. */
  | { type: 'place'; places: readonly Place[] }
)

/** `since`: how many calls the disk had seen then; from there on it must hold. */
export type Fact = Told & { since: number }

export interface WrittenLine {
  bytes: Uint8Array
  blobs: readonly string[]
}

/** What must be found after a crash at one moment, for one session. */
export interface Due {
  lines: Map<string, Durability>
  blobs: Set<string>
  torn: Uint8Array[]
  /** Undefined: nobody was told that it exists. */
  places: readonly Place[] | undefined
}

/** Keeps what callers were told and every line that was ever written, whether it was acknowledged or not. */
export class Ledger {
  readonly folder: string
  readonly facts: Fact[] = []
  /** By session and id: a copied session has the same ids. */
  readonly #written = new Map<string, Map<string, WrittenLine>>()
  readonly blobs = new Map<string, Uint8Array>()
  /** Sessions that were or are being copied from another one, with the entry that their path leads to, if it is one path. */
  readonly copies = new Map<string, string | undefined>()
  readonly #paths: Record<Place, Map<string, LogPaths>> = { active: new Map(), archive: new Map(), trash: new Map() }
  /** An earlier crash left zeros inside a log: it has damage to report, now and later. */
  mayBeDamaged = false

  constructor(folder: string) {
    this.folder = folder
  }

  get sessionIds(): string[] {
    return [...new Set(this.facts.map(({ sessionId }) => sessionId))]
  }

  dueAt(step: number): Map<string, Due> {
    const all = new Map<string, Due>()
    for (const fact of this.facts) {
      if (fact.since > step) continue
      let due = all.get(fact.sessionId)
      if (!due) all.set(fact.sessionId, (due = { lines: new Map(), blobs: new Set(), torn: [], places: undefined }))
      if (fact.type === 'line') due.lines.set(fact.id, fact.level)
      else if (fact.type === 'blob') due.blobs.add(fact.sha256)
      else if (fact.type === 'torn') due.torn.push(fact.bytes)
      else due.places = fact.places
    }
    return all
  }

  told(told: Told, disk: MemoryDisk): void {
    this.facts.push({ ...told, since: disk.journal.length })
  }

  /** Whatever a caller was shown counts as told: every intact line of the log. A hole may have made one out of two halves. */
  published(sessionId: string, disk: MemoryDisk, level: Durability): void {
    const content = disk.contentOf(this.logOf(sessionId)) ?? new Uint8Array()
    for (const { id, bytes } of linesIn(content)) {
      if (parseLine(bytes).type !== 'line') continue
      this.told({ type: 'line', sessionId, id, level }, disk)
    }
  }

  /** Takes note of every line that a call brought to some log. */
  recordWrites(journal: readonly DiskStep[]): void {
    for (const { operation, path, inode = 0, count = 0, state } of journal) {
      if (operation !== 'write' || !path.endsWith('events.jsonl')) continue
      const content = (state.get(inode) as DiskFile).content.view
      const folder = path.split('/').at(-2) as string
      for (const { type, id, bytes, blobs } of linesIn(content.subarray(content.length - count))) {
        // A new session gets its name after its header is written; the header has its id.
        const lines = this.writtenIn(type === 'session' ? id : folder)
        // A line that was cut short is written whole later on, or never counts.
        if (bytes.length > (lines.get(id)?.bytes.length ?? 0)) lines.set(id, { bytes, blobs })
      }
    }
  }

  /** Every line that was ever written in a session, by its id. */
  writtenIn(sessionId: string): Map<string, WrittenLine> {
    const known = this.#written.get(sessionId)
    const lines = known ?? new Map<string, WrittenLine>()
    if (!known) this.#written.set(sessionId, lines)
    return lines
  }

  /** Starts counting calls anew on the disk that a crash left. Only what the crash spared is still due. */
  afterCrash(disk: MemoryDisk, { level, hasHole }: Pick<Crash, 'level' | 'hasHole'>, dueAt: number): Ledger {
    const next = new Ledger(this.folder)
    next.mayBeDamaged = this.mayBeDamaged || hasHole
    for (const fact of this.facts) {
      const isSpared = level === 'process' || fact.type !== 'line' || fact.level === 'durable'
      if (fact.since <= dueAt && isSpared) next.facts.push({ ...fact, since: 0 })
    }
    for (const [sessionId, lines] of this.#written) next.#written.set(sessionId, new Map(lines))
    for (const [sha256, bytes] of this.blobs) next.blobs.set(sha256, bytes)
    for (const [id, leafId] of this.copies) next.copies.set(id, leafId)
    // Of what the machine lost nothing is pending any more: a move has ended, and torn bytes are where they are.
    for (const sessionId of level === 'machine' ? next.sessionIds : []) {
      const places = allPlaces.filter((place) => inodeAt(disk.state, this.logOf(sessionId, place)) !== undefined)
      next.facts.push({ type: 'place', since: 0, sessionId, places })
      const log = disk.contentOf(this.logOf(sessionId)) ?? new Uint8Array()
      const bytes = log.slice(log.lastIndexOf(0x0a) + 1)
      if (bytes.length > 0) next.facts.push({ type: 'torn', since: 0, sessionId, bytes })
    }
    return next
  }

  logOf(sessionId: string, place: Place = 'active'): string {
    return this.pathsOf(sessionId, place).log
  }

  pathsOf(sessionId: string, place: Place): LogPaths {
    const known = this.#paths[place].get(sessionId)
    const paths = known ?? pathsInFolder(`${this.folderOf(place)}/${sessionId}`)
    if (!known) this.#paths[place].set(sessionId, paths)
    return paths
  }

  folderOf(place: Place): string {
    return place === 'active' ? this.folder : `${this.folder}/.${place}`
  }
}

export const allPlaces: readonly Place[] = ['active', 'archive', 'trash']

interface NamedLine extends WrittenLine {
  type: string
  id: string
}

/** The lines in some bytes, also a last one without its newline; what is not one (the newline that mending adds) is left out. */
function linesIn(content: Uint8Array): NamedLine[] {
  const lines: NamedLine[] = []
  for (let start = 0; start < content.length;) {
    const newline = content.indexOf(0x0a, start)
    const bytes = content.slice(start, newline === -1 ? content.length : newline)
    start += bytes.length + 1
    const line = Buffer.from(bytes).toString()
    const [, type, id] = /^\{"seq":\d+,"type":"([a-z_]+)","id":"([^"]+)"/.exec(line) ?? []
    if (type === undefined || id === undefined) continue
    const blobs = [...line.matchAll(/"sha256":"([0-9a-f]{64})"/g)].map((match) => String(match[1]))
    lines.push({ type, id, bytes, blobs })
  }
  return lines
}
