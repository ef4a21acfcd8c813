import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  type Dirent,
} from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { joinRaw, realPath } from '../../paths/real-path.ts'
import { linkedFolders } from './git-index.ts'
import { readPlainFile } from '../words/plain-file.ts'
import { textOf, type Word } from '../words/word.ts'

export interface Repository {
  /** The working tree. */
  root: string
  /** The git folder of this working tree. */
  own: string
  /** The git folder that all working trees of the repository share. */
  shared: string
  /** A submodule that was found by its git folder: its working tree is somewhere below `root`. */
  isModule?: true
}

/**
 * Why git must not run in a folder without a request, if there is a reason. Git runs programs that the settings of the
 * repository name (`core.fsmonitor`, `diff.external`, filters, `textconv`, `gpg.program`), so a repository is safe only
 * if all of its settings are known to be harmless. The settings of the user are trusted. With `runsHooks`, every hook
 * counts, not only the one that runs on reading.
 */
export function repositoryProblem(folder: string, { runsHooks = false } = {}): string | undefined {
  return unlessUnreadable(folder, () => {
    const found = findRepository(folder)
    return typeof found === 'object' ? problemIn(found, { depth: maxDepth, runsHooks }) : found
  })
}

/**
 * The folders of git after each `-C`, from the possible folders of the shell. Real paths: git follows a link before it
 * resolves `..`.
 */
export function gitFolders(named: readonly Word[], start: readonly string[]): string[] | string {
  let folders = start.map(realPath)
  for (const word of named) {
    const text = textOf(word)
    if (text === undefined) return 'the folder that `git` enters is unknown'
    folders = folders.map((folder) => realPath(joinRaw(folder, text)))
  }
  // An earlier command on the line may create it, so it cannot be checked yet.
  const missing = folders.find((folder) => kindOf(folder) !== 'folder')
  return missing === undefined || named.length === 0 ? folders : `${missing} does not exist as a folder yet`
}

/**
 * The repository that git would use in a folder, by the rules of its own discovery: the nearest folder upwards whose
 * `.git` is a complete git folder or a file that refers to one. A sentence if git might use something else, such as a
 * folder that is a git folder itself. Does not run git.
 */
export function findRepository(start: string): Repository | string | undefined {
  return unlessUnreadable(start, () => discover(start))
}

/** An unreadable file or a cyclic link is a problem. */
function unlessUnreadable<Found>(folder: string, find: () => Found): Found | string {
  try {
    return find()
  } catch (error) {
    return `the repository around ${folder} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'})`
  }
}

function discover(start: string): Repository | string | undefined {
  for (let folder = realPath(start); ; folder = dirname(folder)) {
    const found = repositoryAt(folder)
    if (found !== undefined) return found
    // Git treats a folder with HEAD, objects and refs as a repository, and `commondir` lets the last two be anywhere.
    if (isThere(join(folder, 'HEAD'))) return `${folder} may be a bare repository, because it has a HEAD`
    if (dirname(folder) === folder) return undefined
  }
}

/** How deep repositories may be nested. */
const maxDepth = 8

interface Looking {
  /** How many more levels of nesting are allowed. */
  depth: number
  runsHooks: boolean
}

function problemIn(repository: Repository, looking: Looking): string | undefined {
  if (looking.depth === 0) return `${repository.root} is nested in too many other repositories`
  const problemOf = (each: Repository | string): string | undefined =>
    typeof each === 'string' ? each : ownProblem(each, looking)
  return firstOf([repository, ...modulesOf(repository)], problemOf) ?? linksProblem(repository, looking)
}

function ownProblem(repository: Repository, { runsHooks }: Looking): string | undefined {
  const hooks = join(repository.shared, 'hooks')
  // Reading may refresh the index, and git then runs this hook.
  const hook = readFolder(hooks).find(({ name }) => name === 'post-index-change' || (runsHooks && isHook(name)))
  if (hook) return `git may run ${join(hooks, hook.name)}`
  return firstOf(settingsOf(repository), (file) => settingsProblem(file, repository))
}

function isHook(name: string): boolean {
  return /^[a-z0-9-]+$/.test(name)
}

/** Git also enters nested repositories, for example in `git status`. */
function linksProblem({ root, own, shared }: Repository, looking: Looking): string | undefined {
  const links = linkedFolders(own, hashOf({ shared }))
  if (!links) return `the index of ${root} cannot be read`
  return firstOf(links, (link) => {
    const inside = repositoryAt(join(root, link))
    return typeof inside === 'object' ? problemIn(inside, { ...looking, depth: looking.depth - 1 }) : inside
  })
}

/** The length of its object ids. */
export function hashOf({ shared }: Pick<Repository, 'shared'>): { bytes: 20 | 32 } {
  const config = join(shared, 'config')
  const isLong = existsSync(config) && /objectformat\s*=\s*"?sha256/i.test(readSettings(config) ?? '')
  return { bytes: isLong ? 32 : 20 }
}

/**
 * Why git must not run without a request after a command that may add to the index: a nested repository that is not in
 * the index yet. Git would enter it from then on.
 */
export function embeddedProblem(folder: string): string | undefined {
  return unlessUnreadable(folder, () => {
    const found = findRepository(folder)
    if (typeof found !== 'object') return found
    let left = maxEntries
    const look = (path: string): string | undefined =>
      firstOf(readFolder(path), (entry) => {
        left -= 1
        if (left < 0) return `${found.root} has too many files to look for repositories in it`
        const inside = join(path, entry.name)
        if (!entry.isDirectory() || entry.name === '.git' || entry.name === 'node_modules') return undefined
        const embedded = repositoryAt(inside)
        const problem =
          typeof embedded === 'object' ? problemIn(embedded, { depth: maxDepth, runsHooks: false }) : embedded
        return problem ?? look(inside)
      })
    return look(found.root)
  })
}

const maxEntries = 50_000

function firstOf<Item>(items: readonly Item[], problem: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** The repository with this working tree. Undefined if git would look further up. */
function repositoryAt(root: string): Repository | string | undefined {
  const inside = join(root, '.git')
  const kind = kindOf(inside)
  if (kind === 'missing') return undefined
  if (kind === 'folder') return repositoryIn(inside, root)
  // The `.git` of a worktree or submodule is a file with the path of its git folder.
  const target = kind === 'file' ? /^gitdir: (.+)\n?$/.exec(readPath(inside) ?? '')?.[1] : undefined
  if (target === undefined) return `${inside} cannot be read`
  const own = realFolder(root, target)
  return (own === undefined ? undefined : repositoryIn(own, root)) ?? `${inside} does not refer to a repository`
}

/**
 * Like git's `is_git_directory`, but an incomplete git folder is a problem instead of being skipped, unless it has no
 * HEAD.
 */
function repositoryIn(own: string, root: string): Repository | string | undefined {
  const head = join(own, 'HEAD')
  if (!isThere(head)) return undefined
  const common = join(own, 'commondir')
  const path = isThere(common) ? readPath(common)?.replace(/[\r\n]+$/, '') : '.'
  if (path === undefined) return `${common} cannot be read`
  const shared = realFolder(own, path)
  if (shared === undefined) return `${common} does not exist`
  const isWhole = isHead(head) && ['objects', 'refs'].every((name) => canEnter(join(shared, name)))
  return isWhole ? { root, own, shared } : `${own} is an incomplete repository`
}

function isHead(path: string): boolean {
  if (lstatSync(path).isSymbolicLink()) return readlinkSync(path).startsWith('refs/')
  return /^(?:ref:\s*refs\/|[0-9a-f]{40})/i.test(readPath(path) ?? '')
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function kindOf(path: string): 'missing' | 'folder' | 'file' | 'other' {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (!stats) return 'missing'
    if (stats.isDirectory()) return 'folder'
    return stats.isFile() ? 'file' : 'other'
  } catch {
    return 'other' // a cyclic link, or an unreadable folder
  }
}

function canEnter(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path is not normalized first: `link/..` is the parent of the target of the link. */
function realFolder(start: string, path: string): string | undefined {
  try {
    return realpathSync.native(isAbsolute(path) ? path : `${start}/${path}`)
  } catch {
    return undefined
  }
}

/** The text of a file that contains a path. Undefined if it is not UTF-8: git would see another path. */
function readPath(file: string): string | undefined {
  const bytes = readPlainFile(file, { maxBytes: 64 * 1024 })
  if (!bytes) return undefined
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? text : undefined
}

/** Undefined if it is not a regular file, or is too long for settings. */
function readSettings(file: string): string | undefined {
  return readPlainFile(file, { maxBytes: 4 * 1024 * 1024 })?.toString('utf8')
}

/** The submodules whose git folders are inside this one, checked out or not. */
function modulesOf({ root, shared }: Repository): (Repository | string)[] {
  const found: (Repository | string)[] = []
  const look = (folder: string): void => {
    for (const entry of readFolder(folder)) {
      const path = join(folder, entry.name)
      if (!entry.isDirectory()) continue
      const module = repositoryIn(path, root)
      if (module === undefined) look(path)
      else found.push(typeof module === 'string' ? module : { ...module, isModule: true })
      look(join(path, 'modules'))
    }
  }
  look(join(shared, 'modules'))
  return found
}

function readFolder(folder: string): Dirent[] {
  return existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : []
}

function settingsOf({ own, shared }: Repository): string[] {
  return [join(shared, 'config'), join(own, 'config.worktree'), join(shared, 'config.worktree')].filter((file) =>
    existsSync(file),
  )
}

function settingsProblem(file: string, repository: Repository): string | undefined {
  let section = ''
  const settings = readSettings(file)
  if (settings === undefined) return `${file} cannot be read`
  for (const line of settings.split(/\r?\n/)) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue
    const header = /^\s*\[([A-Za-z0-9-]+)(?: "[^"\\\]]*")?\]\s*$/.exec(line)?.[1]
    if (header !== undefined) {
      section = header.toLowerCase()
      continue
    }
    const [, name, value = ''] = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*[^\\])|=)?$/.exec(line) ?? []
    const key = name?.toLowerCase()
    if (key === undefined) return `${file} has the line \`${line.trim()}\`, which cannot be analyzed`
    if (section === 'core' && key === 'worktree' && !staysInside(value.trim(), repository))
      return `${file} makes git use the files of another folder`
    if (!isHarmless(section, key)) return `${file} sets \`${section}.${key}\`, which may run something`
  }
  return undefined
}

/**
 * A submodule names its working tree, which is where it was found. In any other folder, `git diff` would show foreign
 * files, and the submodules of the repository would be elsewhere.
 */
function staysInside(folder: string, { root, own, isModule }: Repository): boolean {
  const place = /^[A-Za-z0-9_./-]+$/.test(folder) ? realFolder(own, folder) : undefined
  const home = realPath(root)
  return place === home || (isModule === true && place?.startsWith(`${home}/`) === true)
}

function isHarmless(section: string, key: string): boolean {
  const keys = harmlessSettings.get(section)
  return keys !== undefined && (keys === 'all' || keys.split(/\s+/).includes(key))
}

const harmlessSettings = new Map(
  Object.entries({
    core: `repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf abbrev
    quotepath commentchar sharedrepository untrackedcache sparsecheckout sparsecheckoutcone longpaths compression checkstat
    trustctime worktree hidedotfiles protecthfs protectntfs`,
    extensions: 'objectformat worktreeconfig',
    remote: 'url fetch push pushurl prune tagopt mirror gh-resolved',
    branch: 'all',
    user: 'name email useconfigonly',
    submodule: 'url active',
    init: 'defaultbranch',
    pull: 'all',
    push: 'all',
    fetch: 'all',
    rebase: 'all',
    gc: 'auto autodetach autopacklimit prune pruneexpire reflogexpire',
    advice: 'all',
    color: 'all',
    index: 'all',
    merge: 'ff conflictstyle renames',
    status: 'showuntrackedfiles short branch',
    commit: 'gpgsign template verbose',
    tag: 'gpgsign sort',
    // Not `lfs.extension.<name>.clean`, `lfs.customtransfer.<name>.path` and similar settings: git-lfs runs them.
    lfs: 'repositoryformatversion locksverify access',
  }),
)
