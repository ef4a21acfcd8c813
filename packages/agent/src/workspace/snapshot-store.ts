import { createHash } from 'node:crypto'
import { constants, existsSync, readFileSync } from 'node:fs'
import { link, lstat, mkdir, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, parse, relative, sep } from 'node:path'
import { withFileLock } from '@tapetree/session/stores/file'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { isSecretPath } from '../permissions/paths/secret-files.ts'
import { realPath } from '../permissions/paths/real-path.ts'
import {
  findRepository,
  hashOf,
  repositoryProblem,
  type Repository,
} from '../permissions/shell/programs/git-repository.ts'
import { isInside } from '../util/is-inside.ts'
import { runGit, type GitResult } from './run-git.ts'

/** The file versions of one workspace: a git repository of our own, whose working tree is the workspace. */
export interface SnapshotStoreOptions {
  /** The workspace. */
  folder: string
  /** Holds the stores of all workspaces. */
  storesFolder: string
  clock?: Clock
  environment?: Readonly<Record<string, string | undefined>>
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
  durationMs: number
}

export interface LeftOutFile {
  path: string
  reason: LeftOutReason
}

export type LeftOutReason = 'secret' | 'large' | 'special' | 'name' | 'unreadable'

/** One path that differs between two trees. A missing side means that there is no file. */
export interface FileChange {
  path: string
  from?: FileVersion
  to?: FileVersion
}

export interface FileVersion {
  mode: 'file' | 'executable' | 'link'
  /** The id of a git blob. */
  id: string
}

/** There are no snapshots of this workspace. The message is a sentence. */
export class SnapshotsOff extends Error {
  override readonly name = 'SnapshotsOff'
}

/** Restores work in here; it is never part of a snapshot. */
export const stagingName = '.tapetree-restore'

const maxNewBytes = 5 * 1024 * 1024
const maxNewFiles = 200_000
const minFreeBytes = 2 * 1024 ** 3
const maxListedLeftOut = 50
const limitMs = 10 * 60_000
const maxOutputBytes = 512 * 1024 ** 2

const settings = {
  'core.bare': 'false',
  // Every file is streamed into a pack: no file is mapped into memory, where one that shrinks would kill git.
  'core.bigFileThreshold': '1',
  'core.compression': '1',
  'core.fsync': 'all',
  'core.autocrlf': 'false',
  'core.fileMode': 'true',
  'core.ignoreCase': 'false',
  'core.logAllRefUpdates': 'false',
  'gc.auto': '0',
  'index.version': '4',
}

/**
 * One sync for all trees. Not in the settings: together with files that are streamed into a pack, git 2.39 loses the pack
 * if it has to store a link or an empty file before.
 */
const writeTree = ['-c', 'core.fsyncMethod=batch', 'write-tree', '--missing-ok']

/** Every file counts as large here, and git does not compare the lines of large files. */
const asText = ['-c', `core.bigFileThreshold=${maxNewBytes}`]
/** The bytes of a file are stored as they are: these attributes override those of the workspace. */
const attributes = '* -text -eol -crlf -ident -filter -working-tree-encoding\n'

export class SnapshotStore {
  /** The folder of the store. */
  readonly path: string
  /** The working tree: the root of the user's repository, or the workspace itself. Paths in trees are relative to it. */
  readonly root: string
  /** The workspace, relative to `root`, with a slash at the end; empty if they are the same. */
  readonly prefix: string
  /** The store with the versions: this one, or that of the workspace of which this is a working copy. */
  readonly #versions: string
  readonly #clock: Clock
  readonly #environment: SnapshotStoreOptions['environment']
  readonly #repository: Repository | undefined
  #globalExcludes = ''
  /** Of the scans so far. A much longer one has hashed files that were touched without being changed. */
  #shortestScanMs = Infinity
  #last: Promise<unknown> = Promise.resolve()

  private constructor(
    place: { path: string; root: string; prefix: string; repository?: Repository; versions?: string },
    options: Pick<SnapshotStoreOptions, 'clock' | 'environment'>,
  ) {
    this.path = place.path
    this.#versions = place.versions ?? place.path
    this.root = place.root
    this.prefix = place.prefix
    this.#repository = place.repository
    this.#clock = options.clock ?? systemClock
    this.#environment = options.environment
  }

  /** Throws `SnapshotsOff` if this folder has no snapshots. */
  static async open(options: SnapshotStoreOptions): Promise<SnapshotStore> {
    const folder = realPath(options.folder)
    const home = realPath(options.environment?.['HOME'] ?? homedir())
    if (folder === parse(folder).root) throw new SnapshotsOff('There are no file snapshots of the root folder.')
    if (isInside(home, folder)) throw new SnapshotsOff('There are no file snapshots of the home folder.')
    const found = findRepository(folder)
    const isUsable = typeof found === 'object' && !found.isModule && !isInside(home, found.root)
    const repository = isUsable ? found : undefined
    const root = repository?.root ?? folder
    const prefix = root === folder ? '' : `${relative(root, folder).split(sep).join('/')}/`
    const id = createHash('sha256').update(folder).digest('hex').slice(0, 24)
    const path = join(options.storesFolder, id)
    await requireSpace(options.storesFolder)
    const store = new SnapshotStore({ path, root, prefix, ...(repository && { repository }) }, options)
    await store.#create(folder)
    return store
  }

  /** The store of a working copy of this workspace. It has the same versions, and leaves out the same files. */
  workingCopy(root: string): SnapshotStore {
    const id = createHash('sha256').update(root).digest('hex').slice(0, 24)
    const { prefix } = this
    const repository = this.#repository && { repository: this.#repository }
    const store = new SnapshotStore(
      { path: join(this.path, 'copies', id), root, prefix, ...repository, versions: this.path },
      { clock: this.#clock, ...(this.#environment && { environment: this.#environment }) },
    )
    store.#globalExcludes = this.#globalExcludes
    return store
  }

  /** Writes all files of a tree into the working tree, which is empty. */
  async checkOut(tree: string): Promise<void> {
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    const taking = join(this.path, `taking-${crypto.randomUUID()}`)
    const variables = { GIT_INDEX_FILE: taking, ...(await this.#borrowedVariables()) }
    try {
      await this.#git(['read-tree', tree], { variables })
      await this.#git(['checkout-index', '--all', '--index', '--quiet'], { variables })
      await rename(taking, join(this.path, `index-${tree}`))
    } finally {
      await rm(taking, { force: true })
    }
  }

  /** All paths of a tree. */
  async paths(tree: string): Promise<string[]> {
    const { output } = await this.#git(['ls-tree', '-r', '-z', '--name-only', '--full-tree', tree])
    return text(output)
      .split('\0')
      .filter((path) => path !== '')
  }

  /** Records the files as they are now. Changes nothing in the workspace. */
  take(): Promise<Snapshot> {
    return this.#inTurn(() => withFileLock(join(this.path, 'store'), () => this.#take()))
  }

  /** What has to change to get from one tree to another, sorted by path. */
  async diff(from: string, to: string): Promise<FileChange[]> {
    return (await this.diffs([{ from, to }]))[0] ?? []
  }

  /** The same for several pairs. */
  async diffs(pairs: readonly { from: string; to: string }[]): Promise<FileChange[][]> {
    const input = pairs.map(({ from, to }) => `${from} ${to}\n`).join('')
    const command = ['diff-tree', '--stdin', '-r', '-z', '--raw', '--no-renames', '--no-abbrev']
    const fields = text((await this.#git(command, { input })).output).split('\0')
    const all: FileChange[][] = []
    for (let index = 0; index < fields.length; index += 1) {
      // The ids of each pair stand in a line of their own, before its first change.
      let field = fields[index] ?? ''
      for (let pair; (pair = /^[0-9a-f]{40,64} [0-9a-f]{40,64}\n/.exec(field)); field = field.slice(pair[0].length))
        all.push([])
      const [modeFrom = '', modeTo = '', idFrom = '', idTo = ''] = field.slice(1).split(' ')
      if (!field.startsWith(':')) continue
      const path = fields[++index] ?? ''
      const before = versionOf(modeFrom, idFrom)
      const after = versionOf(modeTo, idTo)
      all.at(-1)?.push({ path, ...(before && { from: before }), ...(after && { to: after }) })
    }
    return all
  }

  /** How many lines each path gained and lost, sorted by path; undefined for files that are not text. */
  async lineCounts(from: string, to: string): Promise<Map<string, { added: number; removed: number } | undefined>> {
    const command = [...asText, 'diff-tree', '-r', '-z', '--numstat', '--no-renames', from, to]
    const { output } = await this.#git(command, { variables: await this.#borrowedVariables() })
    const records = text(output).split('\0').slice(0, -1)
    return new Map(
      records.map((record) => {
        const [added = '', removed = '', ...path] = record.split('\t')
        const isText = added !== '-'
        return [path.join('\t'), isText ? { added: Number(added), removed: Number(removed) } : undefined]
      }),
    )
  }

  /** Unified diffs of these paths, or of all, one after the other. Cut after so many bytes. */
  async patch(
    from: string,
    to: string,
    { paths = [], maxBytes }: { paths?: readonly string[]; maxBytes: number },
  ): Promise<{ patch: string; isCut: boolean }> {
    const diff = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', '--full-index']
    const ran = await this.#git([...asText, ...diff, from, to, '--', ...paths], {
      variables: await this.#borrowedVariables(),
      maxBytes,
    })
    return { patch: text(ran.output), isCut: ran.isCut }
  }

  /** Writes files of a tree below a folder inside of the working tree, which must not exist yet. */
  async extract(tree: string, paths: readonly string[], folder: string): Promise<void> {
    const index = join(this.path, `extract-${crypto.randomUUID()}`)
    const variables = { GIT_INDEX_FILE: index }
    try {
      const borrowed = await this.#borrowedVariables()
      await this.#git(['read-tree', tree], { variables })
      const into = `${relative(this.root, folder).split(sep).join('/')}/`
      await this.#git(['checkout-index', '-z', '--stdin', `--prefix=${into}`], {
        variables: { ...variables, ...borrowed },
        input: nulSeparated(paths),
      })
    } finally {
      await rm(index, { force: true })
    }
  }

  /** The bytes of a file version. */
  async read(id: string): Promise<Buffer> {
    return (await this.#git(['cat-file', 'blob', id], { variables: await this.#borrowedVariables() })).output
  }

  /** Stores bytes as a file version. */
  async write(bytes: Buffer): Promise<string> {
    return text((await this.#git(['hash-object', '-w', '--no-filters', '--stdin'], { input: bytes })).output).trim()
  }

  /** A merge of three versions of a text; undefined if two of them changed the same lines, or one is no text. */
  async merge(versions: { current: string; base: string; other: string }): Promise<Buffer | undefined> {
    const names = ['current', 'base', 'other'] as const
    const files = names.map((name) => join(this.path, `edit-${crypto.randomUUID()}-${name}`))
    try {
      for (const [index, name] of names.entries())
        await writeFile(files[index] ?? '', await this.read(versions[name]), { mode: 0o600 })
      const ran = await this.#tryGit(['merge-file', '-p', '-q', ...files])
      return ran.type === 'ran' ? ran.output : undefined
    } finally {
      for (const file of files) await rm(file, { force: true })
    }
  }

  /** Whether the store has a file version. */
  async hasVersion(id: string): Promise<boolean> {
    const variables = await this.#borrowedVariables()
    return (await this.#tryGit(['cat-file', '-e', id], { variables })).type === 'ran'
  }

  /** A tree with some paths replaced or removed. */
  async withFiles(tree: string, files: ReadonlyMap<string, FileVersion | undefined>): Promise<string> {
    const index = join(this.path, `edit-${crypto.randomUUID()}`)
    const variables = { GIT_INDEX_FILE: index }
    const zero = '0'.repeat(tree.length)
    const lines = [...files].map(([path, version]) =>
      version ? `${gitModes[version.mode]} ${version.id}\t${path}\0` : `0 ${zero}\t${path}\0`,
    )
    try {
      await this.#git(['read-tree', tree], { variables })
      await this.#git(['update-index', '-z', '--index-info'], { variables, input: lines.join('') })
      return text((await this.#git(writeTree, { variables })).output).trim()
    } finally {
      await rm(index, { force: true })
    }
  }

  /** The version of a path in a tree; undefined if there is no such file. */
  async versionAt(tree: string, path: string): Promise<FileVersion | undefined> {
    const { output } = await this.#git(['ls-tree', '-z', '--full-tree', tree, '--', path])
    const [, mode = '', id = ''] = /^(\d+) blob ([0-9a-f]+)\t/.exec(text(output)) ?? []
    return versionOf(mode, id)
  }

  /** The paths that the ignore files in the workspace would leave out; or those in a tree, if they differ. */
  async ignored(paths: readonly string[], tree?: string): Promise<Set<string>> {
    if (tree === undefined) return this.#checkIgnore(paths, {})
    const listed = await this.paths(tree)
    const ignoreFiles = listed.filter((path) => path === '.gitignore' || path.endsWith('/.gitignore'))
    const index = join(this.path, `extract-${crypto.randomUUID()}`)
    const folder = `${index}-files`
    const variables = { GIT_INDEX_FILE: index, GIT_WORK_TREE: folder, ...(await this.#borrowedVariables()) }
    try {
      await mkdir(folder)
      await this.#git(['read-tree', tree], { variables })
      await this.#git(['checkout-index', '-z', '--stdin'], { variables, input: nulSeparated(ignoreFiles) })
      return await this.#checkIgnore(paths, variables)
    } finally {
      await rm(index, { force: true })
      await rm(folder, { recursive: true, force: true })
    }
  }

  async #checkIgnore(paths: readonly string[], variables: Record<string, string>): Promise<Set<string>> {
    // This command knows no literal paths. With a folder in front, none has a special meaning.
    const input = nulSeparated(paths.map((path) => `./${path}`))
    const options = { variables: { ...variables, GIT_LITERAL_PATHSPECS: '0' }, input }
    const ran = await this.#tryGit(['check-ignore', '-z', '--no-index', '--stdin'], options)
    if (ran.type === 'failed' && ran.exitCode !== 1) throw failure(ran)
    const ignored = text(ran.output)
      .split('\0')
      .filter((path) => path !== '')
    return new Set(ignored.map((path) => path.slice('./'.length)))
  }

  /** True if a tree and everything in it can be read. */
  async has(tree: string): Promise<boolean> {
    const variables = await this.#borrowedVariables()
    const listed = await this.#tryGit(['rev-list', '--objects', '--no-object-names', '--quiet', tree], { variables })
    return listed.type === 'ran'
  }

  /**
   * Copies file versions that the store only borrows from the user's repository, which may delete them. Until then
   * they are read from there.
   */
  async own(): Promise<void> {
    const borrowed = await this.#borrowed()
    if (!borrowed) return
    const { output } = await this.#git(['ls-tree', '-r', '-z', '--full-tree', borrowed.tree])
    const ids = new Set(
      text(output)
        .split('\0')
        .flatMap((line) => / blob ([0-9a-f]+)\t/.exec(line)?.[1] ?? []),
    )
    const name = join(this.#versions, 'git', 'objects', 'pack', 'pack')
    const variables = { GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.objects }
    const packed = await this.#tryGit(['pack-objects', '-q', name], {
      variables,
      input: [...ids].map((id) => `${id}\n`).join(''),
    })
    // Some are gone. The next snapshot reads every file again, and stores what is missing.
    if (packed.type === 'failed')
      await this.#inTurn(() => withFileLock(join(this.path, 'store'), () => this.#forgetIndex()))
    await rm(join(this.path, 'borrowed'), { force: true })
  }

  async #create(folder: string): Promise<void> {
    const git = join(this.path, 'git')
    await mkdir(this.path, { recursive: true, mode: 0o700 })
    if (!existsSync(join(git, 'HEAD'))) {
      const format = this.#repository && hashOf(this.#repository).bytes === 32 ? 'sha256' : 'sha1'
      const made = await runGit(
        ['init', '--quiet', '--bare', `--object-format=${format}`, '--template=', git],
        this.#run(),
      )
      if (made.type === 'failed') {
        if (made.message === '') throw new SnapshotsOff('There are no file snapshots, because git is not installed.')
        throw new SnapshotsOff(`There are no file snapshots, because git failed. It said: ${firstLine(made.message)}`)
      }
      await writeFile(join(this.path, 'folder'), `${folder}\n`)
    }
    await mkdir(join(git, 'info'), { recursive: true })
    await writeIfDifferent(join(git, 'info', 'attributes'), attributes)
    await writeIfDifferent(join(git, 'config'), configText(this.#repository))
    this.#globalExcludes = await this.#readGlobalExcludes()
    // Left by a process that was killed. A lock of git is held by one that runs, and ours excludes those.
    for (const name of await readdir(this.path))
      if (/^(?:taking|extract|edit)-/.test(name)) await rm(join(this.path, name), { recursive: true, force: true })
  }

  async #take(): Promise<Snapshot> {
    const startedAt = this.#clock.now()
    await writeIfDifferent(join(this.#versions, 'git', 'info', 'exclude'), this.#excludes())
    const current = await this.#current()
    const taking = join(this.path, `taking-${crypto.randomUUID()}`)
    const variables = { GIT_INDEX_FILE: taking }
    try {
      // The same file under another name, with the same time: git compares it with the times of the files.
      if (current) await link(current.index, taking)
      const isCopy = this.#versions !== this.path
      const objects = current || isCopy ? undefined : await this.#seed(variables)
      const scanStartedAt = this.#clock.now()
      const scan = await this.#scan(variables)
      const scanMs = this.#clock.now() - scanStartedAt
      if (current && scan.changes.length === 0) {
        if (scanMs > 2 * this.#shortestScanMs) {
          await this.#tryGit(['update-index', '-q', '--refresh'], { variables })
          await rename(taking, current.index)
        }
        this.#shortestScanMs = Math.min(this.#shortestScanMs, scanMs)
        return this.#snapshot({ tree: current.tree, previous: current.tree, scan, startedAt })
      }
      await this.#update(scan, variables)
      const { output } = await this.#gitBesideEditors(writeTree, { variables })
      const tree = text(output).trim()
      if (objects !== undefined) await writeFile(join(this.path, 'borrowed'), `${tree}\n${objects}\n`)
      const index = join(this.path, `index-${tree}`)
      await rename(taking, index)
      if (current && current.index !== index) await rm(current.index, { force: true })
      return this.#snapshot({ tree, ...(current && { previous: current.tree }), scan, startedAt })
    } finally {
      await rm(taking, { force: true })
      await rm(`${taking}.lock`, { force: true })
    }
  }

  /**
   * Begins the first index with the last commit, so that unchanged files need not be stored: they are compared by
   * content, and borrowed from the user's repository. Returns the folder of its objects.
   */
  async #seed(variables: Record<string, string>): Promise<string | undefined> {
    const head = this.#repository && headOf(this.#repository)
    if (!this.#repository || head?.commit === undefined || repositoryProblem(this.root) !== undefined) return undefined
    const objects = join(this.#repository.shared, 'objects')
    const alternates = { ...variables, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
    const tree = this.prefix === '' ? head.commit : `${head.commit}:${this.prefix.slice(0, -1)}`
    const place = this.prefix === '' ? [] : [`--prefix=${this.prefix}`]
    const readTree = await this.#tryGit(['read-tree', ...place, tree], { variables: alternates })
    if (readTree.type === 'failed') return undefined
    // Files that differ stay as they are in the index, and the scan finds them.
    await this.#tryGit(['update-index', '-q', '--refresh'], { variables })
    const { output } = await this.#git(['ls-files', '-z', '--stage'], { variables })
    const zero = '0'.repeat(head.commit.length)
    const unwanted = text(output)
      .split('\0')
      .flatMap((line) => {
        const tab = line.indexOf('\t')
        const path = line.slice(tab + 1)
        const isUnwanted = tab > 0 && (line.startsWith('160000') || isSecretPath(join(this.root, path)))
        return isUnwanted ? [`0 ${zero}\t${path}\0`] : []
      })
    if (unwanted.length > 0)
      await this.#git(['update-index', '-z', '--index-info'], { variables, input: unwanted.join('') })
    return objects
  }

  /** What has changed since the index was written. */
  async #scan(variables: Record<string, string>): Promise<Scan> {
    const scan: Scan = { changes: [], leftOut: [], leftOutCount: 0 }
    const listed = new Map<string, 'new' | 'known'>()
    const output = await this.#list(variables)
    for (const [tag, path] of taggedPaths(output)) {
      if (tag === '?' && path.endsWith('/')) for (const inner of await this.#nested(path)) listed.set(inner, 'new')
      else listed.set(path, tag === '?' ? 'new' : 'known')
    }
    for (const [path, state] of listed) {
      const found = await this.#look(path, state)
      if (found === undefined) continue
      if (found.type === 'left-out') {
        scan.leftOutCount += 1
        if (scan.leftOut.length < maxListedLeftOut) scan.leftOut.push({ path, reason: found.reason })
        if (state === 'known') scan.changes.push({ type: 'removed', path, isForced: true })
      } else scan.changes.push({ ...found, path })
    }
    const added = scan.changes.filter(({ type }) => type === 'added').length
    if (added > maxNewFiles) {
      const limit = maxNewFiles.toLocaleString('en-US')
      throw new SnapshotsOff(`There are no file snapshots, because the folder has more than ${limit} new files.`)
    }
    return scan
  }

  /** The changed and the new paths, with their tags. */
  async #list(variables: Record<string, string>): Promise<Buffer> {
    const place = this.prefix === '' ? '.' : this.prefix.slice(0, -1)
    const command = ['ls-files', '-z', '-t', '-m', '-o', '--exclude-standard', '--', place]
    return (await this.#gitBesideEditors(command, { variables })).output
  }

  async #look(path: string, state: 'new' | 'known'): Promise<Found | undefined> {
    const isNew = state === 'new'
    if (path.includes('\ufffd')) return isNew ? { type: 'left-out', reason: 'name' } : undefined
    const place = join(this.root, path)
    if (isSecretPath(place)) return { type: 'left-out', reason: 'secret' }
    let stats
    try {
      stats = await lstat(place)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return isNew ? undefined : { type: 'removed' }
      return { type: 'left-out', reason: 'unreadable' }
    }
    if (stats.isSymbolicLink()) return { type: isNew ? 'added' : 'changed' }
    if (stats.isDirectory()) return isNew ? undefined : { type: 'removed' }
    if (!stats.isFile()) return { type: 'left-out', reason: 'special' }
    if (isNew && stats.size > maxNewBytes) return { type: 'left-out', reason: 'large' }
    return { type: isNew ? 'added' : 'changed' }
  }

  /** The files of a repository inside of the workspace. Git lists only its folder. */
  async #nested(folder: string): Promise<string[]> {
    const index = join(this.path, `taking-nested-${crypto.randomUUID()}`)
    const variables = { GIT_INDEX_FILE: index, GIT_WORK_TREE: join(this.root, folder) }
    const { output } = await this.#git(['ls-files', '-z', '-t', '-o', '--exclude-standard'], { variables })
    const inner: string[] = []
    for (const [, path] of taggedPaths(output)) {
      if (path.endsWith('/')) inner.push(...(await this.#nested(folder + path)))
      else inner.push(folder + path)
    }
    return inner
  }

  /** Writes the changes into the index, and the contents into the store. */
  async #update(scan: Scan, variables: Record<string, string>): Promise<void> {
    const removed = scan.changes.filter((each) => each.type === 'removed')
    if (removed.length > 0)
      await this.#remove(
        removed.map(({ path }) => path),
        variables,
      )
    let paths = scan.changes.filter((each) => each.type !== 'removed').map(({ path }) => path)
    const command = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
    while (paths.length > 0) {
      const ran = await this.#tryBesideEditors(command, { variables, input: nulSeparated(paths) })
      if (ran.type === 'ran') return
      const [, named] = /Unable to process path (.+)$/m.exec(ran.message) ?? []
      if (named === undefined || !paths.includes(named)) throw failure(ran)
      paths = paths.filter((path) => path !== named)
      scan.changes = scan.changes.filter(({ path }) => path !== named)
      scan.leftOut.push({ path: named, reason: 'unreadable' })
      scan.leftOutCount += 1
    }
  }

  async #remove(paths: readonly string[], variables: Record<string, string>): Promise<void> {
    const zero = '0'.repeat(this.idLength)
    const input = paths.map((path) => `0 ${zero}\t${path}\0`).join('')
    await this.#gitBesideEditors(['update-index', '-z', '--index-info'], { variables, input })
  }

  #snapshot({
    tree,
    previous,
    scan,
    startedAt,
  }: {
    tree: string
    previous?: string
    scan: Scan
    startedAt: number
  }): Snapshot {
    const count = (type: Change['type']): number => scan.changes.filter((each) => each.type === type).length
    const head = this.#repository && headOf(this.#repository)
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
      durationMs: this.#clock.now() - startedAt,
    }
  }

  /** The length of an id of a tree or a file version. */
  get idLength(): number {
    return this.#repository && hashOf(this.#repository).bytes === 32 ? 64 : 40
  }

  /** The path as the workspace sees it. */
  local(path: string): string {
    return path.slice(this.prefix.length)
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

  #excludes(): string {
    const own = this.#repository ? textAt(join(this.#repository.shared, 'info', 'exclude')) : ''
    return `${this.#globalExcludes}\n${own}\n/${stagingName}/\n${this.prefix === '' ? '' : `/${this.prefix}${stagingName}/\n`}`
  }

  async #readGlobalExcludes(): Promise<string> {
    const run = { ...this.#run(), ignoreUser: false }
    const ran = await runGit(['config', '--global', '--type=path', '--get', 'core.excludesFile'], run)
    const environment = this.#environment ?? process.env
    const configHome = environment['XDG_CONFIG_HOME'] ?? join(environment['HOME'] ?? homedir(), '.config')
    const named = ran.type === 'ran' ? text(ran.output).trim() : ''
    return textAt(named === '' ? join(configHome, 'git', 'ignore') : named)
  }

  async #borrowed(): Promise<{ tree: string; objects: string } | undefined> {
    const [tree = '', objects = ''] = textAt(join(this.#versions, 'borrowed')).split('\n')
    return tree === '' ? undefined : { tree, objects }
  }

  async #borrowedVariables(): Promise<Record<string, string>> {
    const borrowed = await this.#borrowed()
    return borrowed ? { GIT_ALTERNATE_OBJECT_DIRECTORIES: borrowed.objects } : {}
  }

  /** Git reads files whenever it writes an index, and fails if one becomes shorter meanwhile. */
  async #tryBesideEditors(command: readonly string[], options: RunOptions): Promise<GitResult> {
    for (let attempt = 1; ; attempt += 1) {
      const ran = await this.#tryGit(command, options)
      const isHit = ran.type === 'failed' && /failed to read|short read|file changed/.test(ran.message)
      if (!isHit || attempt === maxAttempts) return ran
    }
  }

  async #gitBesideEditors(
    command: readonly string[],
    options: RunOptions,
  ): Promise<Extract<GitResult, { type: 'ran' }>> {
    const ran = await this.#tryBesideEditors(command, options)
    if (ran.type === 'failed') throw failure(ran)
    return ran
  }

  async #git(command: readonly string[], options: RunOptions = {}): Promise<Extract<GitResult, { type: 'ran' }>> {
    const ran = await this.#tryGit(command, options)
    if (ran.type === 'failed') throw failure(ran)
    return ran
  }

  #tryGit(command: readonly string[], { variables, input, maxBytes }: RunOptions = {}): Promise<GitResult> {
    const own = { GIT_DIR: join(this.#versions, 'git'), GIT_WORK_TREE: this.root, ...variables }
    return runGit(command, {
      ...this.#run(),
      variables: own,
      ...(input !== undefined && { input }),
      ...(maxBytes !== undefined && { maxBytes }),
    })
  }

  #run(): Omit<Parameters<typeof runGit>[1], 'input'> {
    return {
      cwd: this.root,
      root: this.root,
      clock: this.#clock,
      limitMs,
      maxBytes: maxOutputBytes,
      ignoreUser: true,
      ...(this.#environment && { environment: this.#environment }),
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work, work)
    this.#last = result.catch(() => undefined)
    return result
  }
}

const maxAttempts = 20

interface RunOptions {
  variables?: Record<string, string>
  input?: string | Buffer
  maxBytes?: number
}

type Change =
  | { type: 'added' | 'changed'; path: string }
  /** Forced: it is left out from now on, but still there. */
  | { type: 'removed'; path: string; isForced?: true }

type Found = { type: 'added' | 'changed' | 'removed' } | { type: 'left-out'; reason: LeftOutReason }

interface Scan {
  changes: Change[]
  leftOut: LeftOutFile[]
  leftOutCount: number
}

/** A file that git may be reading for another process, or for a working copy. */
async function writeIfDifferent(file: string, content: string): Promise<void> {
  if (textAt(file) === content) return
  const written = `${file}-${crypto.randomUUID()}`
  await writeFile(written, content)
  await rename(written, file)
}

async function requireSpace(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { bavail, bsize } = await statfs(folder)
  if (bavail * bsize < minFreeBytes)
    throw new SnapshotsOff('There are no file snapshots, because less than 2 GiB of disk space is free.')
}

function configText(repository: Repository | undefined): string {
  const isLong = repository !== undefined && hashOf(repository).bytes === 32
  const extension = isLong ? '[extensions]\n\tobjectFormat = sha256\n' : ''
  const lines = Object.entries(settings).map(([name, value]) => {
    const [section, key] = name.split('.')
    return `[${section}]\n\t${key} = ${value}\n`
  })
  return `[core]\n\trepositoryFormatVersion = ${isLong ? 1 : 0}\n${extension}${lines.join('')}`
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

const gitModes = { file: '100644', executable: '100755', link: '120000' } as const

function versionOf(mode: string, id: string): FileVersion | undefined {
  const found = Object.entries(gitModes).find(([, each]) => each === mode)
  return found && { mode: found[0] as FileVersion['mode'], id }
}

function* taggedPaths(output: Buffer): Generator<[tag: string, path: string]> {
  for (const record of text(output).split('\0')) if (record !== '') yield [record.slice(0, 1), record.slice(2)]
}

function nulSeparated(paths: readonly string[]): string {
  return paths.map((path) => `${path}\0`).join('')
}

function text(bytes: Buffer): string {
  return bytes.toString('utf8')
}

function textAt(file: string): string {
  try {
    return readFileSync(file, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NONBLOCK })
  } catch {
    return ''
  }
}

function firstLine(message: string): string {
  return message.split('\n', 1)[0] ?? ''
}

function failure(ran: Extract<GitResult, { type: 'failed' }>): Error {
  const reason =
    ran.message === '' ? 'It is missing, or took too long.' : `It said: ${firstLine(ran.message).slice(0, 300)}`
  return new Error(`The snapshot of the files failed, because git did. ${reason}`)
}
