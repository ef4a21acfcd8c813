import { existsSync, readFileSync, statSync } from 'node:fs'
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
  const { settings, hooks } = found
  // Reading may refresh the index, and then this one is run.
  if (existsSync(join(hooks, 'post-index-change'))) return `${hooks} has a hook that git runs when it reads`
  for (const file of settings) {
    const problem = settingsProblem(file)
    if (problem !== undefined) return problem
  }
  return undefined
}

interface Repository {
  settings: string[]
  hooks: string
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

function repositoryIn(folder: string): Repository {
  const common = join(folder, 'commondir')
  const shared = existsSync(common) ? resolve(folder, readFileSync(common, 'utf8').trim()) : folder
  const settings = [join(shared, 'config'), join(folder, 'config.worktree'), join(shared, 'config.worktree')]
  return { settings: settings.filter((file) => existsSync(file)), hooks: join(shared, 'hooks') }
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
    trustctime hidedotfiles protecthfs protectntfs`,
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
