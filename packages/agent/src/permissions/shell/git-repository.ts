import { existsSync, readdirSync, readFileSync, statSync, type Dirent } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { realPath } from '../paths/real-path.ts'

/**
 * What keeps the repository around a folder from being read without asking, if anything does. Git runs programs that the
 * repository's own settings name (`core.fsmonitor`, `diff.external`, filters, `textconv`, `gpg.program`), so a repository whose
 * settings are not all known to be harmless is as good as a script. The user's own settings are theirs.
 */
export function repositoryProblem(folder: string): string | undefined {
  const found = findRepository(realPath(folder))
  if (found === undefined) return undefined
  if (typeof found === 'string') return found
  for (const folder of [found, ...modulesOf(found)]) {
    // Reading may refresh the index, and then this one is run.
    const hook = join(folder.shared, 'hooks', 'post-index-change')
    if (existsSync(hook)) return `${hook} is run when git reads`
    for (const file of settingsOf(folder)) {
      const problem = settingsProblem(file)
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

interface Repository {
  /** What belongs to this working folder alone. */
  own: string
  /** What all working folders of the repository share. */
  shared: string
}

function findRepository(start: string): Repository | string | undefined {
  for (let folder = start; ; folder = dirname(folder)) {
    const inside = join(folder, '.git')
    if (existsSync(inside)) return statSync(inside).isDirectory() ? repositoryIn(inside) : linkedRepository(inside)
    // Git takes any folder of this shape for a repository, also one that came as a part of another.
    if (['HEAD', 'objects', 'refs'].every((name) => existsSync(join(folder, name)))) {
      return `${folder} is a repository without a working folder`
    }
    if (dirname(folder) === folder) return undefined
  }
}

/** The `.git` of a worktree or of a submodule is a file that says where the repository is. */
function linkedRepository(file: string): Repository | string {
  const target = /^gitdir: (.+)\n?$/.exec(readFileSync(file, 'utf8'))?.[1]
  if (target === undefined) return `${file} cannot be read`
  return repositoryIn(resolve(dirname(file), target))
}

function repositoryIn(own: string): Repository {
  const common = join(own, 'commondir')
  return { own, shared: existsSync(common) ? resolve(own, readFileSync(common, 'utf8').trim()) : own }
}

/** Git looks into its modules too when it is asked for the state of things. */
function modulesOf({ shared }: Repository): Repository[] {
  const found: Repository[] = []
  const look = (folder: string): void => {
    for (const entry of readFolder(folder)) {
      const path = join(folder, entry.name)
      if (!entry.isDirectory()) continue
      if (existsSync(join(path, 'HEAD'))) found.push({ own: path, shared: path })
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

function settingsProblem(file: string): string | undefined {
  let section = ''
  for (const line of readFileSync(file, 'utf8').split(/\r?\n/)) {
    if (/^\s*(?:[#;].*)?$/.test(line)) continue
    const header = /^\s*\[([A-Za-z0-9-]+)(?: "[^"\\\]]*")?\]\s*$/.exec(line)?.[1]
    if (header !== undefined) {
      section = header.toLowerCase()
      continue
    }
    const key = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=.*[^\\]|=)?$/.exec(line)?.[1]?.toLowerCase()
    if (key === undefined) return `${file} has the line \`${line.trim()}\`, which cannot be judged`
    if (!isHarmless(section, key)) return `${file} sets \`${section}.${key}\`, which may run something`
  }
  return undefined
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
