import { existsSync } from 'node:fs'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withFileLock } from '@tapetree/session/stores/file'
import { hasCode } from '../tools/tool-problem.ts'
import { LogNames, logsOf, treesOfSession, type NamedTree, type Names } from './log-names.ts'
import { ShadowGit, textAt, textOf, writeIfDifferent } from './shadow-git.ts'
import { withStoreLock } from './store-lock.ts'
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

/** How long snapshots are kept, and how much disk space those of one folder may use. */
export interface SnapshotLimits {
  /** All snapshots are kept for so long, and afterwards those at messages of the user. */
  maxAgeMs: number
  /** If a store is larger, older snapshots are deleted until it fits. */
  maxBytes: number
}

export interface CollectOptions {
  /** Holds the stores of all workspaces. */
  storesFolder: string
  /** Every log below this folder is read, and those elsewhere that have used a store. Trees that no log names are deleted. */
  sessionsFolder: string
  /** Logs of this session do not count: it is erased. */
  except?: string
  /** Only stores that have one of these trees. */
  having?: ReadonlySet<string>
  now?: number
  limits?: Partial<SnapshotLimits>
  /** Stops before the next log or store. */
  signal?: AbortSignal
}

export interface CollectedStore extends SnapshotStoreInfo {
  /** What was on disk before. */
  bytesBefore: number
  /** How many snapshots are kept, each counted for the first reason. */
  kept: {
    /** At messages on the current branch of a session. */
    branch: number
    /** The newest of a session, or needed by an open restore or a working copy. */
    pinned: number
    /** Newer than the maximum age. */
    recent: number
    /** At other messages of the user. */
    message: number
  }
  /** Logs that may name snapshots and cannot be read, because their disk is missing. Then nothing is deleted. */
  unreadableLogs: string[]
}

type KeptReason = keyof CollectedStore['kept']

const dayMs = 24 * 60 * 60_000
const defaultLimits: SnapshotLimits = { maxAgeMs: 30 * dayMs, maxBytes: 2 * 1024 ** 3 }
/** If a store is too large, only the snapshots of this part of the maximum age are kept. */
const shares = [1, 1 / 2, 1 / 4, 1 / 10, 1 / 30, 0]

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
  await withStoreLock(join(path, 'store'), async () => {
    for (const tree of await newestTrees(path)) await rm(join(path, `index-${tree}`), { force: true })
  })
}

async function newestTrees(path: string): Promise<string[]> {
  return (await readdir(path)).flatMap((name) => /^index-([0-9a-f]+)$/.exec(name)?.[1] ?? [])
}

/**
 * Deletes the snapshots that no log names or that are too old, and packs the rest. Never deletes what the current branch of
 * a session needs. Waits for snapshots and restores in progress, and they wait for it.
 */
export async function collectSnapshots(options: CollectOptions): Promise<CollectedStore[]> {
  const { storesFolder, having, signal } = options
  const collected: CollectedStore[] = []
  const logs = new LogNames(options)
  for (const store of await listSnapshotStores(storesFolder)) {
    signal?.throwIfAborted()
    const git = new ShadowGit({ path: store.path, root: store.path })
    if (having && (await treesIn(git, having)).size === 0) continue
    collected.push(await collectStore(store, { git, logs, options }))
  }
  return collected
}

/**
 * The same, but at most once a day, and only for stores with snapshots that are too old or that are too large: the others
 * are not packed again. Returns undefined if it is not due.
 */
export async function retainSnapshots(options: CollectOptions): Promise<CollectedStore[] | undefined> {
  const { storesFolder, now = Date.now(), signal } = options
  const mark = join(storesFolder, 'last-retention')
  const stores = await listSnapshotStores(storesFolder)
  if (stores.length === 0) return undefined
  const isDue = await withFileLock(join(storesFolder, 'retention'), async () => {
    const age = now - Date.parse(textAt(mark).trim())
    if (age >= 0 && age < dayMs) return false
    await writeFile(mark, `${new Date(now).toISOString()}\n`)
    return true
  })
  if (!isDue) return undefined
  const collected: CollectedStore[] = []
  const logs = new LogNames(options)
  for (const store of stores) {
    signal?.throwIfAborted()
    const git = new ShadowGit({ path: store.path, root: store.path })
    const { trees } = await logs.read((await knownLogs(store.path)).readable)
    const { maxBytes, ...rule } = ruleOf(options)
    const expired = [...trees].flatMap(([tree, named]) => (reasonToKeep(named, rule) ? [] : [tree]))
    if (store.bytes > maxBytes || (await treesIn(git, new Set(expired))).size > 0)
      collected.push(await collectStore(store, { git, logs, options }))
  }
  return collected
}

/** When old snapshots were last looked for in the background; undefined if never. */
export function lastRetention(storesFolder: string): Date | undefined {
  const time = Date.parse(textAt(join(storesFolder, 'last-retention')).trim())
  return Number.isNaN(time) ? undefined : new Date(time)
}

async function collectStore(
  store: SnapshotStoreInfo,
  { git, logs, options }: { git: ShadowGit; logs: LogNames; options: CollectOptions },
): Promise<CollectedStore> {
  const { maxBytes, now, maxAgeMs } = ruleOf(options)
  return withStoreLock(join(store.path, 'restore'), () =>
    withStoreLock(join(store.path, 'store'), async () => {
      // Under the lock, so that no snapshot is taken whose line is not written yet.
      const { readable, unreadable } = await knownLogs(store.path)
      const names = await logs.read(readable)
      let kept: CollectedStore['kept'] = { branch: 0, pinned: 0, recent: 0, message: 0 }
      if (unreadable.length === 0) {
        await writeIfDifferent(join(store.path, 'logs'), readable.map((path) => `${path}\n`).join(''))
        kept = await collect(git, names, (named) => reasonToKeep(named, { now, maxAgeMs }))
        for (const share of shares) {
          if ((await bytesBelow(store.path)) <= maxBytes) break
          const rule = { now, maxAgeMs: maxAgeMs * share, isShort: true }
          kept = await collect(git, names, (named) => reasonToKeep(named, rule))
        }
      }
      const bytes = await bytesBelow(store.path)
      return { ...store, bytesBefore: store.bytes, bytes, kept, unreadableLogs: unreadable }
    }),
  )
}

function ruleOf({ now = Date.now(), limits }: CollectOptions): SnapshotLimits & { now: number } {
  return { ...defaultLimits, ...limits, now }
}

/** Undefined if the tree may be deleted. `isShort`: older messages on other branches do not count. */
function reasonToKeep(
  { time, isAtMessage, isOnBranch, isPinned }: NamedTree,
  { now, maxAgeMs, isShort = false }: { now: number; maxAgeMs: number; isShort?: boolean },
): KeptReason | undefined {
  if (isOnBranch) return 'branch'
  if (isPinned) return 'pinned'
  if (maxAgeMs > 0 && now - time <= maxAgeMs) return 'recent'
  return isAtMessage && !isShort ? 'message' : undefined
}

/** The logs that have used a store, by their paths. One whose folder is missing too may be on a disk that is missing. */
async function knownLogs(path: string): Promise<{ readable: string[]; unreadable: string[] }> {
  const known = { readable: new Array<string>(), unreadable: new Array<string>() }
  for (const log of textAt(join(path, 'logs')).split('\n').filter(Boolean)) {
    if (await logsOf(log)) known.readable.push(log)
    else if (!existsSync(dirname(log))) known.unreadable.push(log)
  }
  return known
}

/**
 * Call it before a session is erased, and what it returns afterwards: deletes the files that only this session named.
 * For `erasing` of a session store.
 */
export async function eraseSnapshots(
  sessionId: string,
  options: Pick<CollectOptions, 'storesFolder' | 'sessionsFolder'>,
): Promise<() => Promise<void>> {
  const having = await treesOfSession(sessionId, options.sessionsFolder)
  return async () => {
    if (having.size > 0) await collectSnapshots({ ...options, except: sessionId, having })
  }
}

/** Returns how many trees are kept, by reason. */
async function collect(
  git: ShadowGit,
  { trees, restores }: Names,
  reasonOf: (named: NamedTree) => KeptReason | undefined,
): Promise<CollectedStore['kept']> {
  const reasons = new Map<string, KeptReason>()
  for (const [tree, named] of trees) {
    const reason = reasonOf(named)
    if (reason) reasons.set(tree, reason)
  }
  const kept = await treesIn(git, new Set(reasons.keys()))
  await keepOnly(git, [...kept])
  // Without an index, the next snapshot reads and stores every file.
  const working = await readdir(join(git.path, 'copies')).catch(() => [])
  for (const place of [git.path, ...working.map((name) => join(git.path, 'copies', name))])
    for (const tree of await newestTrees(place))
      if (!kept.has(tree)) await rm(join(place, `index-${tree}`), { force: true })
  const copies = join(git.path, 'kept')
  for (const restoreId of await readdir(copies).catch(() => []))
    if (!restores.has(restoreId)) await rm(join(copies, restoreId), { recursive: true, force: true })
  const counts: CollectedStore['kept'] = { branch: 0, pinned: 0, recent: 0, message: 0 }
  for (const tree of kept) {
    const reason = reasons.get(tree)
    if (reason) counts[reason] += 1
  }
  return counts
}

async function treesIn(git: ShadowGit, ids: ReadonlySet<string>): Promise<Set<string>> {
  if (ids.size === 0) return new Set()
  const input = [...ids].map((id) => `${id}\n`).join('')
  const { output } = await git.run(['cat-file', '--batch-check=%(objectname) %(objecttype)'], {
    variables: git.borrowing,
    input,
  })
  const lines = textOf(output).split('\n')
  return new Set(lines.flatMap((line) => (line.endsWith(' tree') ? [line.slice(0, -' tree'.length)] : [])))
}

/** A snapshot that is made meanwhile creates and removes folders, so one that is gone counts as empty. */
async function bytesBelow(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(noneIfGone)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await bytesBelow(path)
    if (!entry.isFile()) continue
    const stats = await stat(path).catch(() => undefined)
    bytes += (stats?.blocks ?? 0) * 512
  }
  return bytes
}

function noneIfGone(error: unknown): never[] {
  if (hasCode(error, 'ENOENT')) return []
  throw error
}
