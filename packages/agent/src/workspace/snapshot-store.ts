import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, parse, relative, resolve, sep } from 'node:path'
import type { Clock } from '@tapetree/session/util/wait'
import { realPath } from '../permissions/paths/real-path.ts'
import {
  findRepository,
  hashOf,
  repositoryProblem,
  type Repository,
} from '../permissions/shell/programs/git-repository.ts'
import { isInside } from '../util/is-inside.ts'
import { FileVersions, writeTree } from './file-versions.ts'
import { scanFiles, type LeftOutFile, type Scan, type ScannedChange } from './scan-files.ts'
import {
  fieldsOf,
  gitFailure,
  nulSeparated,
  ShadowGit,
  SnapshotsOff,
  syncFile,
  textAt,
  textOf,
  writeIfDifferent,
} from './shadow-git.ts'
import { withStoreLock } from './store-lock.ts'
import { keepOnly, packBorrowed, packStore, packTree, removeTemporaryPacks, takePack } from './store-packs.ts'

/** The file versions of one workspace: a git repository of our own, whose working tree is the workspace. */
export interface SnapshotStoreOptions {
  /** The workspace. */
  folder: string
  /** Holds the stores of all workspaces. */
  storesFolder: string
  clock?: Clock
  environment?: Readonly<Record<string, string | undefined>>
  /** To read and restore what it has: opens it also if there is too little disk space for new snapshots. */
  isForOldSnapshots?: boolean
}

export interface Snapshot {
  /** The id of a git tree. Equal trees are equal files. */
  tree: string
  /** The snapshot before this one. */
  previous?: string
  added: number
  changed: number
  removed: number
  /** The first of them. Ignored files are not among them. */
  leftOut: LeftOutFile[]
  leftOutCount: number
  /** Of the user's repository. */
  head?: string
  branch?: string
  /** How long it took to find out what has changed. */
  scanMs: number
  durationMs: number
}

export interface TakeOptions {
  /** Every file is stored. From now on, files may change without having an effect on this snapshot. */
  onStored?: () => void
  /** Runs before anyone may delete trees that no log names: writes the tree into a log. */
  onTaken?: (snapshot: Snapshot) => Promise<void>
}

/** A file in a tree. */
export interface TreeFile {
  path: string
  id: string
  size: number
  isLink: boolean
}

/** Restores work in here; it is never part of a snapshot. */
export const stagingName = '.tapetree-restore'

const maxPacks = 50
const minLongScan = 2
const minFreeBytes = 2 * 1024 ** 3

/** Streams every file into one pack, which is synced once, instead of storing and syncing each on its own. */
const intoOnePack = ['-c', 'core.bigFileThreshold=1']

/** Takes snapshots of a workspace and keeps them. The index of the newest one shows what has changed since. */
export class SnapshotStore extends FileVersions {
  /** The folder of the store. */
  readonly path: string
  /** The working tree: the root of the user's repository, or the workspace itself. Paths in trees are relative to it. */
  readonly root: string
  /** The workspace, relative to `root`, with a slash at the end; empty if they are the same. */
  readonly prefix: string
  readonly #git: ShadowGit
  #globalExcludes = ''
  /** Of the scans so far. A much longer one may have hashed files that were touched without being changed. */
  #shortestScanMs = Infinity
  /** So many times the shortest scan is much longer. Doubles if the machine was only busy. */
  #longScan = minLongScan
  #last: Promise<unknown> = Promise.resolve()

  private constructor(git: ShadowGit, prefix: string) {
    super(git)
    this.#git = git
    this.path = git.path
    this.root = git.root
    this.prefix = prefix
  }

  /** Throws `SnapshotsOff` if this folder has no snapshots. */
  static async open(options: SnapshotStoreOptions): Promise<SnapshotStore> {
    const { git, prefix, folder } = await placeOf(options)
    if (!options.isForOldSnapshots) await requireSpace(git.path)
    const store = new SnapshotStore(git, prefix)
    await mkdir(git.path, { recursive: true, mode: 0o700 })
    await git.create()
    await writeFile(join(git.path, 'folder'), `${folder}\n`)
    store.#globalExcludes = await git.globalExcludes()
    return store
  }

  /** Why this folder has no snapshots: a sentence. Undefined if it can have some. Creates nothing. */
  static async whyOff(options: SnapshotStoreOptions): Promise<string | undefined> {
    try {
      await placeOf(options)
      await requireSpace(options.storesFolder)
      return undefined
    } catch (error) {
      if (error instanceof SnapshotsOff) return error.message
      throw error
    }
  }

  /** The store of a working copy of this workspace. It has the same versions, and leaves out the same files. */
  workingCopy(root: string): SnapshotStore {
    const id = createHash('sha256').update(root).digest('hex').slice(0, 24)
    const { repository, clock, environment } = this.#git
    const place = { path: join(this.path, 'copies', id), versions: this.path, root, clock }
    const git = new ShadowGit({ ...place, ...(repository && { repository }), ...(environment && { environment }) })
    const store = new SnapshotStore(git, this.prefix)
    store.#globalExcludes = this.#globalExcludes
    return store
  }

  /** Records that a log names trees of this store, so that they are kept wherever the log is. */
  async addLog(path: string): Promise<void> {
    const log = resolve(path)
    const file = join(this.#git.versions, 'logs')
    const isKnown = (): boolean => textAt(file).split('\n').includes(log)
    if (isKnown() || log.includes('\n')) return
    await this.#alone(async () => {
      if (!isKnown()) await writeIfDifferent(file, `${textAt(file)}${log}\n`)
    })
  }

  /** Writes all files of a tree into the working tree, which is empty. */
  async checkOut(tree: string): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    await this.#git.withIndex(async (index) => {
      const variables = { ...index, ...this.#git.borrowing }
      await this.#git.run(['read-tree', tree], { variables })
      await this.#git.run(['checkout-index', '--all', '--index', '--quiet'], { variables })
      await syncFile(index.GIT_INDEX_FILE)
      await rename(index.GIT_INDEX_FILE, join(this.path, `index-${tree}`))
    })
  }

  /** Throws `SnapshotsOff` if too little disk space is free for new snapshots. */
  requireSpace(): Promise<void> {
    return requireSpace(this.path)
  }

  /** Records the files as they are now. Changes nothing in the workspace. */
  take(options: TakeOptions = {}): Promise<Snapshot> {
    return this.#alone(async () => {
      const snapshot = await this.#takeOrRepair(options)
      await options.onTaken?.(snapshot)
      return snapshot
    })
  }

  /**
   * Copies file versions that the store only borrows from the user's repository, which may delete them. Until then
   * they are read from there.
   */
  async own(): Promise<void> {
    const { borrowed } = this.#git
    if (!borrowed) return
    const isWhole = await packBorrowed(this.#git, borrowed.tree)
    await this.#alone(async () => {
      if (this.#git.borrowed?.tree !== borrowed.tree) return
      // Some are gone. The next snapshot reads every file again, and stores what is missing.
      if (!isWhole) await this.#forgetIndex()
      await rm(join(this.#git.versions, 'borrowed'), { force: true })
    })
  }

  /** Combines what the store has into one pack. Deletes nothing else. */
  async pack(): Promise<void> {
    await this.own()
    await packStore(this.#git)
  }

  /** The same, if there are so many packs that git becomes slow. */
  async packIfNeeded(): Promise<void> {
    const names = await readdir(join(this.#git.objects, 'pack'))
    if (names.filter((name) => name.endsWith('.pack')).length > maxPacks) await this.pack()
  }

  /** @internal The files of a tree: those of the workspace alone, by their paths in it. */
  async filesOf(tree: string): Promise<TreeFile[]> {
    const { output } = await this.#git.run(['ls-tree', '-r', '-z', '--long', tree], { variables: this.#git.borrowing })
    return fieldsOf(output).map((field) => {
      const [, mode = '', id = '', size = '', path = ''] = /^(\d+) \w+ (\w+) +(\d+|-)\t(.*)$/s.exec(field) ?? []
      return { path, id, size: Number(size) || 0, isLink: mode === '120000' }
    })
  }

  /** The contents of file versions, in the order of their ids. */
  async contentsOf(ids: readonly string[]): Promise<Buffer[]> {
    const input = ids.map((id) => `${id}\n`).join('')
    const { output } = await this.#git.run(['cat-file', '--batch'], { variables: this.#git.borrowing, input })
    let at = 0
    return ids.map((id) => {
      const end = output.indexOf('\n', at)
      const [named, , size] = output.toString('utf8', at, end).split(' ')
      if (named !== id || size === undefined) throw new Error(`The file version ${id} is gone.`)
      at = end + 1 + Number(size) + 1
      return output.subarray(end + 1, at - 1)
    })
  }

  /** The tree of the workspace alone, without some of its files. */
  async treeWithout(tree: string, paths: readonly string[]): Promise<string> {
    return this.#git.withIndex(async (index) => {
      const variables = { ...index, ...this.#git.borrowing }
      await this.#git.run(['read-tree', this.prefix === '' ? tree : `${tree}:${this.prefix.slice(0, -1)}`], {
        variables,
      })
      const command = ['update-index', '--force-remove', '-z', '--stdin']
      if (paths.length > 0) await this.#git.run(command, { variables, input: nulSeparated(paths) })
      return textOf((await this.#git.run(writeTree, { variables })).output).trim()
    })
  }

  /** Whether it has everything in a tree. */
  async isWhole(tree: string): Promise<boolean> {
    const command = ['rev-list', '--objects', '--quiet', tree]
    return (await this.#git.try(command, { variables: this.#git.borrowing })).type === 'ran'
  }

  /** A git pack with everything in a tree that is not in another one, too. Undefined if it is larger than `maxBytes`. */
  async export(
    tree: string,
    { base, maxBytes }: { base?: string | undefined; maxBytes: number },
  ): Promise<Buffer | undefined> {
    const { bytes, isCut } = await packTree(this.#git, { tree, base, maxBytes })
    return isCut ? undefined : bytes
  }

  /** Adds what is in a pack of another store. */
  async import(pack: Buffer): Promise<void> {
    await this.#alone(() => takePack(this.#git, pack))
  }

  /** Deletes everything that is in none of these trees, if there are so many packs that git becomes slow. */
  async keepIfNeeded(trees: readonly string[]): Promise<void> {
    const names = await readdir(join(this.#git.objects, 'pack'))
    if (names.filter((name) => name.endsWith('.pack')).length <= maxPacks) return
    await this.own()
    await this.#alone(() => keepOnly(this.#git, trees))
  }

  /** The path as the workspace sees it. */
  local(path: string): string {
    return path.slice(this.prefix.length)
  }

  async #takeOrRepair(options: TakeOptions): Promise<Snapshot> {
    try {
      return await this.#take(options)
    } catch (error) {
      await removeTemporaryPacks(this.#git)
      if (!/index file|index uses|bad index|unknown index|bad signature/.test((error as Error).message)) throw error
      // The index is damaged. Without it, every file is read again.
      await this.#forgetIndex()
      return this.#take(options)
    }
  }

  async #take({ onStored }: TakeOptions): Promise<Snapshot> {
    const startedAt = this.#git.clock.now()
    await this.#writeExcludes()
    const current = await this.#current()
    return this.#git.withIndex(async (variables) => {
      const taking = variables.GIT_INDEX_FILE
      // The same file under another name, with the same time: git compares it with the times of the files.
      if (current) await link(current.index, taking)
      const isCopy = this.#git.versions !== this.path
      const objects = current || isCopy ? undefined : await this.#seed(variables)
      const scanStartedAt = this.#git.clock.now()
      const isSeeded = objects !== undefined
      const scan = await scanFiles({ git: this.#git, prefix: this.prefix, variables, isSeeded })
      const scanMs = this.#git.clock.now() - scanStartedAt
      if (current && scan.changes.length === 0) {
        if (scanMs > this.#longScan * this.#shortestScanMs) await this.#refresh(taking, current.index)
        this.#shortestScanMs = Math.min(this.#shortestScanMs, scanMs)
        return this.#snapshot({ tree: current.tree, previous: current.tree, scan, scanMs, startedAt })
      }
      await this.#update(scan, variables)
      onStored?.()
      const { output } = await this.#git.runBesideEditors(writeTree, { variables })
      const tree = textOf(output).trim()
      if (objects !== undefined) await writeFile(join(this.path, 'borrowed'), `${tree}\n${objects}\n`)
      const index = join(this.path, `index-${tree}`)
      await syncFile(taking)
      await rename(taking, index)
      if (current && current.index !== index) await rm(current.index, { force: true })
      return this.#snapshot({ tree, ...(current && { previous: current.tree }), scan, scanMs, startedAt })
    })
  }

  /** Records the times of files that were touched, so that later scans need not hash them. */
  async #refresh(taking: string, index: string): Promise<void> {
    const { ino } = await stat(taking)
    await this.#git.try(['update-index', '-q', '--refresh'], { variables: { GIT_INDEX_FILE: taking } })
    // Git writes a new file if there was something to record.
    const isUseful = (await stat(taking)).ino !== ino
    this.#longScan = isUseful ? minLongScan : 2 * this.#longScan
    if (!isUseful) return
    await syncFile(taking)
    await rename(taking, index)
  }

  /**
   * Begins the first index with the last commit, so that unchanged files need not be stored: they are compared by
   * content, and borrowed from the user's repository. Returns the folder of its objects.
   */
  async #seed(variables: Record<string, string>): Promise<string | undefined> {
    const { repository } = this.#git
    const head = repository && headOf(repository)
    if (!repository || head?.commit === undefined || repositoryProblem(this.root) !== undefined) return undefined
    const objects = join(repository.shared, 'objects')
    const alternates = { ...variables, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
    const tree = this.prefix === '' ? head.commit : `${head.commit}:${this.prefix.slice(0, -1)}`
    const place = this.prefix === '' ? [] : [`--prefix=${this.prefix}`]
    const readTree = await this.#git.try(['read-tree', ...place, tree], { variables: alternates })
    if (readTree.type === 'failed') return undefined
    // Files that differ stay as they are in the index, and the scan finds them.
    await this.#git.try(['update-index', '-q', '--refresh'], { variables })
    return objects
  }

  /** Writes the changes into the index, and the contents into the store. */
  async #update(scan: Scan, variables: Record<string, string>): Promise<void> {
    const forced = scan.changes.filter((each) => each.isForced)
    if (forced.length > 0) {
      const zero = '0'.repeat(this.idLength)
      const input = forced.map(({ path }) => `0 ${zero}\t${path}\0`).join('')
      await this.#git.runBesideEditors(['update-index', '-z', '--index-info'], { variables, input })
    }
    let paths = scan.changes.filter((each) => !each.isForced).map(({ path }) => path)
    const command = [...intoOnePack, 'update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    while (paths.length > 0) {
      const ran = await this.#git.tryBesideEditors(command, { variables, input: nulSeparated(paths) })
      if (ran.type === 'ran') return
      const [, named] = /Unable to process path (.+)$/m.exec(ran.message) ?? []
      if (named === undefined || !paths.includes(named)) throw gitFailure(ran)
      paths = paths.filter((path) => path !== named)
      scan.changes = scan.changes.filter(({ path }) => path !== named)
      scan.leftOut.push({ path: named, reason: 'unreadable' })
      scan.leftOutCount += 1
    }
  }

  #snapshot({
    tree,
    previous,
    scan,
    scanMs,
    startedAt,
  }: {
    tree: string
    previous?: string
    scan: Scan
    scanMs: number
    startedAt: number
  }): Snapshot {
    const count = (type: ScannedChange['type']): number => scan.changes.filter((each) => each.type === type).length
    const head = this.#git.repository && headOf(this.#git.repository)
    return {
      tree,
      ...(previous !== undefined && { previous }),
      added: count('added'),
      changed: count('changed'),
      removed: count('removed'),
      leftOut: scan.leftOut.map(({ path, reason }) => ({ path: this.local(path), reason })),
      leftOutCount: scan.leftOutCount,
      ...(head?.commit !== undefined && { head: head.commit }),
      ...(head?.branch !== undefined && { branch: head.branch }),
      scanMs,
      durationMs: this.#git.clock.now() - startedAt,
    }
  }

  /** The newest index. Its name is the tree that it makes, so that the two cannot disagree. */
  async #current(): Promise<{ index: string; tree: string } | undefined> {
    const found: { index: string; tree: string; time: number }[] = []
    for (const name of await readdir(this.path)) {
      const [, tree] = /^index-([0-9a-f]{40,64})$/.exec(name) ?? []
      const index = join(this.path, name)
      if (tree !== undefined) found.push({ index, tree, time: (await stat(index)).ctimeMs })
    }
    const [newest, ...older] = found.toSorted((a, b) => b.time - a.time)
    for (const { index } of older) await rm(index, { force: true })
    return newest
  }

  async #forgetIndex(): Promise<void> {
    for (const name of await readdir(this.path)) if (name.startsWith('index-')) await rm(join(this.path, name))
  }

  /** What the user's repository and the user ignore, which our own repository would not know. */
  async #writeExcludes(): Promise<void> {
    const { repository, versions } = this.#git
    const own = repository ? textAt(join(repository.shared, 'info', 'exclude')) : ''
    const staging = this.prefix === '' ? `/${stagingName}/\n` : `/${stagingName}/\n/${this.prefix}${stagingName}/\n`
    await writeIfDifferent(join(versions, 'git', 'info', 'exclude'), `${this.#globalExcludes}\n${own}\n${staging}`)
  }

  /** One at a time, here, in other processes and in working copies: nothing is deleted while versions are stored. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const locked = (): Promise<T> => withStoreLock(join(this.#git.versions, 'store'), work)
    const result = this.#last.then(locked, locked)
    this.#last = result.catch(() => undefined)
    return result
  }
}

async function placeOf({
  storesFolder,
  clock,
  environment,
  ...options
}: SnapshotStoreOptions): Promise<{ git: ShadowGit; prefix: string; folder: string }> {
  const folder = realPath(options.folder)
  const home = realPath(environment?.['HOME'] ?? homedir())
  if (folder === parse(folder).root) throw new SnapshotsOff('There are no file snapshots of the root folder.')
  if (isInside(home, folder)) throw new SnapshotsOff('There are no file snapshots of the home folder.')
  const found = findRepository(folder)
  const isUsable = typeof found === 'object' && !found.isModule && !isInside(home, found.root)
  const repository = isUsable ? found : undefined
  const root = repository?.root ?? folder
  const prefix = root === folder ? '' : `${relative(root, folder).split(sep).join('/')}/`
  const path = join(storesFolder, storeId({ folder, prefix, ...(repository && { repository }) }))
  const place = { path, root, ...(repository && { repository }), ...(clock && { clock }) }
  const git = new ShadowGit({ ...place, ...(environment && { environment }) })
  await git.requireGit()
  return { git, prefix, folder }
}

/** A workspace has another store if its working tree becomes another one: paths in trees are relative to that. */
function storeId({ folder, prefix, repository }: { folder: string; prefix: string; repository?: Repository }): string {
  const hash = repository && hashOf(repository).bytes === 32 ? 'sha256' : 'sha1'
  const key = prefix === '' && hash === 'sha1' ? folder : [folder, prefix, hash].join('\0')
  return createHash('sha256').update(key).digest('hex').slice(0, 24)
}

async function requireSpace(folder: string): Promise<void> {
  let place = folder
  while (!existsSync(place)) place = dirname(place)
  const { bavail, bsize } = await statfs(place)
  if (bavail * bsize < minFreeBytes)
    throw new SnapshotsOff('There are no file snapshots, because less than 2 GiB of disk space is free.')
}

/** The commit and the branch that are checked out. Reads the files; git does not run. */
function headOf({ own, shared }: Repository): { commit?: string; branch?: string } {
  const head = textAt(join(own, 'HEAD')).trim()
  const [, name] = /^ref: (refs\/\S+)$/.exec(head) ?? []
  if (name === undefined) return /^[0-9a-f]{40,64}$/.test(head) ? { commit: head } : {}
  const branch = name.replace(/^refs\/heads\//, '')
  const loose = name.includes('..') ? '' : textAt(join(shared, name)).trim()
  const packed = textAt(join(shared, 'packed-refs'))
    .split('\n')
    .find((line) => line.endsWith(` ${name}`))
  const commit = loose === '' ? packed?.slice(0, packed.indexOf(' ')) : loose
  return { branch, ...(commit !== undefined && /^[0-9a-f]{40,64}$/.test(commit) && { commit }) }
}
