import { createReadStream, type Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { isInside } from '../util/is-inside.ts'

/** What logs name. */
export interface Names {
  trees: Map<string, NamedTree>
  restores: Set<string>
}

export interface NamedTree {
  /** Of the newest line that names it, in milliseconds. */
  time: number
  /** It has the files at a message of the user. */
  isAtMessage: boolean
  /** Such a message is on the current branch of its session. */
  isOnBranch: boolean
  /** It is the newest of its session, or an open restore or a working copy needs it. */
  isPinned: boolean
}

interface LogPlaces {
  sessionsFolder: string
  /** Logs of this session do not count: it is erased. */
  except?: string
  signal?: AbortSignal
}

/** Reads what logs name. A log that has the same size is not read again: logs only grow. */
export class LogNames {
  readonly #places: LogPlaces
  readonly #known = new Map<string, { size: number; names: Names }>()

  constructor(places: LogPlaces) {
    this.#places = places
  }

  /** What every log in the folder of the sessions names, and these logs, each by its file or its folder. */
  async read(others: Iterable<string> = []): Promise<Names> {
    const names = newNames()
    for (const path of await logsBelow(this.#places.sessionsFolder)) await this.#add(names, path)
    for (const other of others)
      if (!isInside(other, this.#places.sessionsFolder))
        for (const path of (await logsOf(other)) ?? []) await this.#add(names, path)
    return names
  }

  async #add(names: Names, path: string): Promise<void> {
    const { except, signal } = this.#places
    signal?.throwIfAborted()
    if (except !== undefined && isOfSession(except, path)) return
    const { size } = await stat(path)
    const known = this.#known.get(path)
    const own = known?.size === size ? known.names : await namesInLog(path)
    this.#known.set(path, { size, names: own })
    for (const restoreId of own.restores) names.restores.add(restoreId)
    for (const [tree, named] of own.trees) addTree(names, tree, named)
  }
}

/** The trees that the logs of one session name. */
export async function treesOfSession(sessionId: string, sessionsFolder: string): Promise<Set<string>> {
  const found = new Set<string>()
  for (const path of await logsBelow(sessionsFolder))
    if (isOfSession(sessionId, path)) for (const tree of (await namesInLog(path)).trees.keys()) found.add(tree)
  return found
}

/** The files of a log that was opened by this path, also if its session was archived or deleted since. */
export async function logsOf(path: string): Promise<string[] | undefined> {
  const places = [path, ...['.archive', '.trash'].map((place) => join(dirname(path), place, basename(path)))]
  for (const place of places) {
    const stats = await stat(place).catch(() => undefined)
    if (stats?.isFile()) return [place]
    if (!stats) continue
    const entries = await readdir(place, { withFileTypes: true })
    return entries.filter(isLog).map(({ name }) => join(place, name))
  }
  return undefined
}

async function logsBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter(isLog).map(({ parentPath, name }) => join(parentPath, name))
}

function isLog(entry: Dirent): boolean {
  return entry.isFile() && entry.name.includes('.jsonl')
}

/** The folder of a session has its id as its name. */
function isOfSession(sessionId: string, path: string): boolean {
  return dirname(path).split(sep).includes(sessionId)
}

function newNames(): Names {
  return { trees: new Map(), restores: new Set() }
}

function addTree({ trees }: Names, tree: string, named: NamedTree): void {
  const { time, isAtMessage, isOnBranch, isPinned } = trees.get(tree) ?? named
  trees.set(tree, {
    time: Math.max(time, named.time),
    isAtMessage: isAtMessage || named.isAtMessage,
    isOnBranch: isOnBranch || named.isOnBranch,
    isPinned: isPinned || named.isPinned,
  })
}

async function namesInLog(path: string): Promise<Names> {
  const scan = new LogScan()
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) scan.take(line)
  return scan.names()
}

const types = /"type":"(?:snapshot|restore|check|working_copy|leaf)"/
/** The beginning of an entry as our writer writes it. Its content may be long and is not parsed. */
const entryStart = /^\{"seq":\d+,"type":"([^"]+)","id":"([^"]+)","parent_id":(?:null|"([^"]*)")/
const userMessage = '"message":{"role":"user"'

class LogScan {
  readonly #names = newNames()
  readonly #parents = new Map<string, string | undefined>()
  /** The messages of the user, by entry, with the trees at each. */
  readonly #messages = new Map<string, Set<string>>()
  /** Of a restore that has not ended. */
  readonly #open = new Set<string>()
  /** Of the working copy of a variant. */
  #copy = new Set<string>()
  #leafId: string | undefined
  #tree: string | undefined

  take(line: string): void {
    const [, type, id, parentId] = entryStart.exec(line) ?? []
    if (type !== undefined && id !== undefined) {
      this.#takeEntry({ type, id, parentId, isOfUser: line.includes(userMessage) })
      return
    }
    if (!types.test(line) && !line.includes('"parent_id"')) return
    try {
      this.#takeParsed(JSON.parse(line) as LineWithTrees)
    } catch {
      // A damaged line names nothing.
    }
  }

  names(): Names {
    const names = this.#names
    for (const tree of [...this.#open, ...this.#copy]) this.#mark(tree, 'isPinned')
    if (this.#tree !== undefined) this.#mark(this.#tree, 'isPinned')
    for (const trees of this.#messages.values()) for (const tree of trees) this.#mark(tree, 'isAtMessage')
    for (const id of this.#branch()) for (const tree of this.#messages.get(id) ?? []) this.#mark(tree, 'isOnBranch')
    return names
  }

  #takeEntry(entry: { type: string; id: string; parentId: string | undefined; isOfUser: boolean }): void {
    const { type, id, parentId, isOfUser } = entry
    if (type === 'label' || type === 'session_info') return
    this.#parents.set(id, parentId)
    this.#leafId = id
    // Only changes are recorded: without a line of its own, a message has the files of the line before it.
    if (isOfUser) this.#messages.set(id, new Set(this.#tree === undefined ? [] : [this.#tree]))
  }

  #takeParsed(parsed: LineWithTrees): void {
    const { type, id, parent_id: parentId, snapshot, restore, leaf } = parsed
    if (parentId !== undefined && id !== undefined) {
      this.#takeEntry({ type, id, parentId: parentId ?? undefined, isOfUser: parsed.message?.role === 'user' })
      return
    }
    const time = Date.parse(parsed.timestamp ?? '') || Date.now()
    if (leaf) this.#leafId = leaf.target_id ?? undefined
    const found = idsIn(parsed[parsed.type as 'snapshot'])
    for (const tree of found)
      addTree(this.#names, tree, { time, isAtMessage: false, isOnBranch: false, isPinned: false })
    if (snapshot?.tree !== undefined) {
      this.#tree = snapshot.tree
      if (snapshot.entry_id !== undefined) {
        const trees = this.#messages.get(snapshot.entry_id) ?? new Set()
        this.#messages.set(snapshot.entry_id, trees.add(snapshot.tree))
      }
    }
    if (type === 'working_copy') this.#copy = new Set(found)
    if (restore?.restore_id === undefined) return
    this.#names.restores.add(restore.restore_id)
    // An open restore can be finished or undone, however old it is.
    this.#open.clear()
    if (restore.phase === 'start') for (const tree of found) this.#open.add(tree)
  }

  /** The entries from the leaf to the first one. All messages, if an entry in between cannot be read. */
  #branch(): Iterable<string> {
    const path: string[] = []
    for (let id = this.#leafId; id !== undefined; id = this.#parents.get(id)) {
      if (!this.#parents.has(id)) return this.#messages.keys()
      path.push(id)
    }
    return path
  }

  #mark(tree: string, property: 'isAtMessage' | 'isOnBranch' | 'isPinned'): void {
    const named = this.#names.trees.get(tree)
    if (named) named[property] = true
  }
}

interface LineWithTrees {
  type: string
  id?: string
  parent_id?: string | null
  message?: { role?: string }
  timestamp?: string
  snapshot?: { tree?: string; entry_id?: string }
  restore?: { restore_id?: string; phase?: string }
  leaf?: { target_id?: string | null }
}

/** Every id of a git object in a value. What is not a tree of the store is ignored later. */
function idsIn(value: unknown): string[] {
  if (typeof value === 'string') return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value) ? [value] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(idsIn) : []
}
