import { existsSync, readdirSync, statSync, type Dirent } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { realPath } from '../paths/real-path.ts'
import { linkedFolders } from './git-index.ts'
import { readPlainFile } from './plain-file.ts'

/**
 * What keeps the repository around a folder from being read without asking, if anything does. Git runs programs that the
 * repository's own settings name (`core.fsmonitor`, `diff.external`, filters, `textconv`, `gpg.program`), so a repository whose
 * settings are not all known to be harmless is as good as a script. The user's own settings are theirs.
 */
export function repositoryProblem(folder: string): string | undefined {
  const found = findRepository(realPath(folder))
  return typeof found === 'object' ? problemIn(found, maxDepth) : found
}

/** How deep repositories may lie in each other. */
const maxDepth = 8

interface Repository {
  /** The folder whose files it keeps. */
  root: string
  /** What belongs to this working folder alone. */
  own: string
  /** What all working folders of the repository share. */
  shared: string
}

function problemIn(repository: Repository, depth: number): string | undefined {
  if (depth === 0) return `${repository.root} lies in too many other repositories`
  return firstOf([repository, ...modulesOf(repository)], ownProblem) ?? linksProblem(repository, depth)
}

function ownProblem(repository: Repository): string | undefined {
  // Reading may refresh the index, and then this one is run.
  const hook = join(repository.shared, 'hooks', 'post-index-change')
  if (existsSync(hook)) return `${hook} is run when git reads`
  return firstOf(settingsOf(repository), (file) => settingsProblem(file, repository))
}

/** Git looks into the repositories below this one too when it is asked for the state of things. */
function linksProblem({ root, own, shared }: Repository, depth: number): string | undefined {
  const config = join(shared, 'config')
  const isLong = existsSync(config) && /objectformat\s*=\s*"?sha256/i.test(readSettings(config) ?? '')
  const links = linkedFolders(own, { bytes: isLong ? 32 : 20 })
  if (!links) return `the index of ${root} cannot be read`
  return firstOf(links, (link) => {
    const inside = repositoryAt(join(root, link))
    return typeof inside === 'object' ? problemIn(inside, depth - 1) : inside
  })
}

function firstOf<Item>(items: readonly Item[], problem: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = problem(item)
    if (found !== undefined) return found
  }
  return undefined
}

function findRepository(start: string): Repository | string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const found = repositoryAt(folder)
    if (found !== undefined) return found
    // Git takes any folder of this shape for a repository, also one that came as a part of another.
    if (['HEAD', 'objects', 'refs'].every((name) => existsSync(join(folder, name)))) {
      return `${folder} is a repository without a working folder`
    }
    if (dirname(folder) === folder) return undefined
  }
}

/** The `.git` of a worktree or of a submodule is a file that says where the repository is. */
function repositoryAt(root: string): Repository | string | undefined {
  const inside = join(root, '.git')
  if (!existsSync(inside)) return undefined
  if (statSync(inside).isDirectory()) return repositoryIn(inside, root)
  const target = /^gitdir: (.+)\n?$/.exec(readSettings(inside) ?? '')?.[1]
  return target === undefined ? `${inside} cannot be read` : repositoryIn(resolve(root, target), root)
}

function repositoryIn(own: string, root: string): Repository | string {
  const common = join(own, 'commondir')
  if (!existsSync(common)) return { root, own, shared: own }
  const shared = readSettings(common)?.trim()
  return shared === undefined ? `${common} cannot be read` : { root, own, shared: resolve(own, shared) }
}

/** Undefined where it is no plain file, or longer than any settings are. */
function readSettings(file: string): string | undefined {
  return readPlainFile(file, { maxBytes: 4 * 1024 * 1024 })?.toString('utf8')
}

/** Repositories that are kept within this one, whether or not their files are there. */
function modulesOf({ root, shared }: Repository): Repository[] {
  const found: Repository[] = []
  const look = (folder: string): void => {
    for (const entry of readFolder(folder)) {
      const path = join(folder, entry.name)
      if (!entry.isDirectory()) continue
      if (existsSync(join(path, 'HEAD'))) found.push({ root, own: path, shared: path })
      else look(path)
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
    if (key === undefined) return `${file} has the line \`${line.trim()}\`, which cannot be judged`
    if (section === 'core' && key === 'worktree' && !staysInside(value.trim(), repository))
      return `${file} makes git read the files of another folder`
    if (!isHarmless(section, key)) return `${file} sets \`${section}.${key}\`, which may run something`
  }
  return undefined
}

/** A submodule names its working folder, which is where it was found; elsewhere `git diff` would show the files of others. */
function staysInside(folder: string, { root, own }: Repository): boolean {
  if (!/^[A-Za-z0-9_./-]+$/.test(folder)) return false
  const place = realPath(resolve(own, folder))
  const home = realPath(root)
  return place === home || place.startsWith(`${home}/`)
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
    gc: 'all',
    advice: 'all',
    color: 'all',
    index: 'all',
    merge: 'ff conflictstyle renames',
    status: 'showuntrackedfiles short branch',
    commit: 'gpgsign template verbose',
    tag: 'gpgsign sort',
    lfs: 'all',
  }),
)
