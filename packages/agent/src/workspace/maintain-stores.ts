import { createReadStream, type Dirent } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { createInterface } from 'node:readline'
import { withFileLock } from '@tapetree/session/stores/file'
import { ShadowGit, textAt, textOf } from './shadow-git.ts'
import { keepOnly } from './store-packs.ts'

/** The file snapshots of one workspace. */
export interface SnapshotStoreInfo {
  /** The folder of the store. */
  path: string
  /** The workspace. */
  folder: string
  /** On disk. */
  bytes: number
}

export interface CollectOptions {
  /** Holds the stores of all workspaces. */
  storesFolder: string
  /** Every log below this folder is read. Trees that no log names are deleted. */
  sessionsFolder: string
  /** Logs of this session do not count: it is erased. */
  except?: string
  /** Only stores that have one of these trees. */
  having?: ReadonlySet<string>
  now?: number
  maxBytes?: number
}

export interface CollectedStore extends SnapshotStoreInfo {
  /** What was on disk before. */
  bytesBefore: number
  /** Trees that logs name and that are kept. */
  trees: number
}

const dayMs = 24 * 60 * 60_000
/** All snapshots are kept for so long, and afterwards those at the start of a run. */
const allKeptMs = 30 * dayMs
const defaultMaxBytes = 2 * 1024 ** 3
/** If a store is larger than it may be, older snapshots are deleted, until it fits. */
const shorterMs = [allKeptMs, 14 * dayMs, 7 * dayMs, 3 * dayMs, dayMs]

export async function listSnapshotStores(storesFolder: string): Promise<SnapshotStoreInfo[]> {
  const names = await readdir(storesFolder).catch(() => [])
  const stores: SnapshotStoreInfo[] = []
  for (const name of names) {
    const path = join(storesFolder, name)
    const folder = textAt(join(path, 'folder')).trimEnd()
    if (folder !== '') stores.push({ path, folder, bytes: await bytesBelow(path) })
  }
  return stores
}

/** Whether the newest snapshot of a store can be read completely. */
export async function isSnapshotStoreWhole({ path }: SnapshotStoreInfo): Promise<boolean> {
  const git = new ShadowGit({ path, root: path })
  for (const tree of await newestTrees(path)) {
    const command = ['rev-list', '--objects', '--no-object-names', '--quiet', tree]
    if ((await git.try(command, { variables: git.borrowing })).type === 'failed') return false
  }
  return true
}

/** Makes the next snapshot read and store every file again. What is stored stays. */
export async function repairSnapshotStore({ path }: SnapshotStoreInfo): Promise<void> {
  await withFileLock(join(path, 'store'), async () => {
    for (const tree of await newestTrees(path)) await rm(join(path, `index-${tree}`), { force: true })
  })
}

async function newestTrees(path: string): Promise<string[]> {
  return (await readdir(path)).flatMap((name) => /^index-([0-9a-f]+)$/.exec(name)?.[1] ?? [])
}

/**
 * Deletes the snapshots that no log names or that are too old, and packs the rest. Waits for snapshots and restores in
 * progress, and they wait for it.
 */
export async function collectSnapshots(options: CollectOptions): Promise<CollectedStore[]> {
  const { storesFolder, having, now = Date.now(), maxBytes = defaultMaxBytes } = options
  const collected: CollectedStore[] = []
  const logs: ReadLogs = new Map()
  for (const store of await listSnapshotStores(storesFolder)) {
    const git = new ShadowGit({ path: store.path, root: store.path })
    if (having && (await treesIn(git, having)).length === 0) continue
    const trees = await withFileLock(join(store.path, 'restore'), () =>
      withFileLock(join(store.path, 'store'), async () => {
        // Under the lock, so that no snapshot is taken whose line is not written yet.
        const named = await readNames(options, logs)
        let kept = await collect(git, named, (snapshot) => snapshot.isStart || now - snapshot.time <= allKeptMs)
        for (const ageMs of shorterMs) {
          if ((await bytesBelow(store.path)) <= maxBytes) break
          kept = await collect(git, named, (snapshot) => now - snapshot.time <= ageMs)
        }
        return kept
      }),
    )
    collected.push({ ...store, bytesBefore: store.bytes, bytes: await bytesBelow(store.path), trees })
  }
  return collected
}

/**
 * Call it before a session is erased, and what it returns afterwards: deletes the files that only this session named.
 * For `erasing` of a session store.
 */
export async function eraseSnapshots(
  sessionId: string,
  options: Pick<CollectOptions, 'storesFolder' | 'sessionsFolder'>,
): Promise<() => Promise<void>> {
  const having = new Set<string>()
  const entries = await readdir(options.sessionsFolder, { recursive: true, withFileTypes: true })
  for (const entry of entries.filter((each) => isLog(each) && isOf(sessionId, each)))
    for (const tree of (await namesInLog(join(entry.parentPath, entry.name))).trees.keys()) having.add(tree)
  return async () => {
    if (having.size > 0) await collectSnapshots({ ...options, except: sessionId, having })
  }
}

/** What logs name. */
interface Names {
  /** By tree, the newest line that names it. */
  trees: Map<string, { time: number; isStart: boolean }>
  /** Kept whatever their age: the newest of each session, and those of restores that are still open. */
  pinned: Set<string>
  restores: Set<string>
}

function newNames(): Names {
  return { trees: new Map(), pinned: new Set(), restores: new Set() }
}

async function collect(
  git: ShadowGit,
  { trees, pinned, restores }: Names,
  isKept: (snapshot: { time: number; isStart: boolean }) => boolean,
): Promise<number> {
  const wanted = [...trees].flatMap(([tree, snapshot]) => (isKept(snapshot) ? [tree] : []))
  const kept = await treesIn(git, new Set([...wanted, ...pinned]))
  await keepOnly(git, kept)
  // Without an index, the next snapshot reads and stores every file.
  const working = await readdir(join(git.path, 'copies')).catch(() => [])
  for (const place of [git.path, ...working.map((name) => join(git.path, 'copies', name))])
    for (const tree of await newestTrees(place))
      if (!kept.includes(tree)) await rm(join(place, `index-${tree}`), { force: true })
  const copies = join(git.path, 'kept')
  for (const restoreId of await readdir(copies).catch(() => []))
    if (!restores.has(restoreId)) await rm(join(copies, restoreId), { recursive: true, force: true })
  return kept.length
}

async function treesIn(git: ShadowGit, ids: ReadonlySet<string>): Promise<string[]> {
  if (ids.size === 0) return []
  const input = [...ids].map((id) => `${id}\n`).join('')
  const { output } = await git.run(['cat-file', '--batch-check=%(objectname) %(objecttype)'], {
    variables: git.borrowing,
    input,
  })
  return textOf(output)
    .split('\n')
    .flatMap((line) => (line.endsWith(' tree') ? [line.slice(0, -' tree'.length)] : []))
}

/** What each log names. A log that has the same size is not read again: logs only grow. */
type ReadLogs = Map<string, { size: number; names: Names }>

async function readNames({ sessionsFolder, except }: CollectOptions, logs: ReadLogs): Promise<Names> {
  const names = newNames()
  const entries = await readdir(sessionsFolder, { recursive: true, withFileTypes: true })
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    if (!isLog(entry) || (except !== undefined && isOf(except, entry))) continue
    const { size } = await stat(path)
    const known = logs.get(path)
    const own = known?.size === size ? known.names : await namesInLog(path)
    logs.set(path, { size, names: own })
    for (const tree of own.pinned) names.pinned.add(tree)
    for (const restoreId of own.restores) names.restores.add(restoreId)
    for (const [tree, snapshot] of own.trees) addTree(names, tree, snapshot)
  }
  return names
}

function isLog(entry: Dirent): boolean {
  return entry.isFile() && entry.name.includes('.jsonl')
}

/** The folder of a session has its id as its name. */
function isOf(sessionId: string, { parentPath }: Dirent): boolean {
  return parentPath.split(sep).includes(sessionId)
}

async function namesInLog(path: string): Promise<Names> {
  const names = newNames()
  let newest: string | undefined
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity }))
    newest = addNames(line, names) ?? newest
  if (newest !== undefined) names.pinned.add(newest)
  return names
}

const types = /"type":"(?:snapshot|restore|check|workspace|variants|variant_chosen)"/

/** Returns the tree of a snapshot line. */
function addNames(line: string, names: Names): string | undefined {
  if (!types.test(line)) return undefined
  let parsed: LineWithTrees
  try {
    parsed = JSON.parse(line) as LineWithTrees
  } catch {
    return undefined
  }
  const time = Date.parse(parsed.timestamp ?? '') || Date.now()
  const { snapshot, restore } = parsed
  const found = idsIn(parsed[parsed.type as 'snapshot'])
  for (const tree of found) addTree(names, tree, { time, isStart: snapshot?.when === 'start' })
  if (restore?.restore_id !== undefined) {
    names.restores.add(restore.restore_id)
    // An open restore can be finished or undone, however old it is.
    for (const tree of found) if (restore.phase === 'start') names.pinned.add(tree)
    if (restore.phase === 'end') for (const tree of found) names.pinned.delete(tree)
  }
  return snapshot?.tree
}

interface LineWithTrees {
  type: string
  timestamp?: string
  snapshot?: { when?: string; tree?: string }
  restore?: { restore_id?: string; phase?: string }
}

function addTree({ trees }: Names, tree: string, { time, isStart }: { time: number; isStart: boolean }): void {
  const known = trees.get(tree)
  trees.set(tree, { time: Math.max(time, known?.time ?? 0), isStart: isStart || known?.isStart === true })
}

/** Every id of a git object in a value. What is not a tree of the store is ignored later. */
function idsIn(value: unknown): string[] {
  if (typeof value === 'string') return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value) ? [value] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(idsIn) : []
}

async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const stats = await stat(join(entry.parentPath, entry.name)).catch(() => undefined)
    bytes += (stats?.blocks ?? 0) * 512
  }
  return bytes
}
