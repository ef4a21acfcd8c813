import { join } from 'node:path'
import { isInside } from '../util/is-inside.ts'

/** A file or folder that exists. */
export interface Place {
  path: string
  isFolder: boolean
  /** It may go at any moment, with its program. */
  isSocket?: true
}

/** What is on the machine. All paths are absolute, without links on the way to them. */
export interface SandboxFacts {
  /** The folders in which commands may write; the working folder is the first one. */
  folders: readonly string[]
  /** A folder of the session that commands see as `/tmp`. */
  scratch: string
  /** Files and folders outside of `folders` that no command may read: keys, credentials, our own data, homes of others. */
  secrets: readonly Place[]
  /** Sockets of other programs. A file system that is read-only does not stop a program from connecting to them. */
  sockets: readonly string[]
  /** Git folders in `folders`, those of submodules included, and the one of a working folder that is a submodule. */
  repositories: readonly string[]
  /** Folders of linked worktrees in git folders. */
  worktrees: readonly string[]
  /** Outside of `folders`: what git writes for a working folder that is a linked worktree or a submodule. */
  gitFolders: readonly string[]
  /** Files and folders in `folders` that make other programs run something, `.git` folders not included. */
  controls: readonly Place[]
  /** Links whose names are those of control files. */
  links: readonly { path: string; target: string }[]
  /** Secrets in `folders`, such as `.env`. They may be control files as well. */
  ownSecrets: readonly Place[]
  /** Folders of the home folder that programs write to without being asked, and where to put what they write. */
  caches: readonly { path: string; instead: string }[]
}

export interface SandboxPolicy {
  writable: readonly string[]
  /** Working folders that are only read, in folders such as `/tmp` that are replaced by others. */
  shown?: readonly string[]
  scratch: string
  caches: SandboxFacts['caches']
  /** Options that make the home folder writable without changing it. */
  overlay?: readonly string[]
  /** Outside of the writable folders. */
  hidden: readonly Place[]
  /** In the writable folders: cannot be renamed, so that no other folder takes their place. Writable, even in one that is read-only. */
  pinned: readonly string[]
  /** In the writable folders, apart from pinned ones below. */
  readOnly: readonly string[]
  hiddenInside: readonly Place[]
}

/** What git runs or reads its settings from, below `.git`. */
export const gitControls = ['hooks', 'config', 'config.worktree', 'info', 'modules', 'commondir'] as const

/** The same, below the folder of a linked worktree. */
const worktreeControls = ['commondir', 'gitdir', 'config.worktree'] as const

export interface PolicyOptions {
  /** The command only reads, so the working folder is read-only as well. */
  isReadOnly?: boolean
  /** Lets commands read the secrets of the working folder, such as `.env`. */
  showsOwnSecrets?: boolean
}

export function sandboxPolicy(
  facts: SandboxFacts,
  { isReadOnly = false, showsOwnSecrets = false }: PolicyOptions = {},
): SandboxPolicy {
  const { folders, scratch, secrets, sockets, repositories, worktrees, controls, ownSecrets, caches } = facts
  // Whatever is in these folders is gone from every box.
  const isReplaced = (path: string): boolean =>
    ['/tmp', '/var/tmp', '/run', '/dev', '/proc'].some((folder) => isInside(path, folder))
  const isOurs = (path: string): boolean => folders.some((folder) => isInside(path, folder))
  // A socket in a hidden folder need not be hidden itself, and each mount is one that may fail.
  const isHidden = (path: string): boolean => secrets.some((secret) => secret.isFolder && isInside(path, secret.path))
  const asPlace = (path: string): Place => ({ path, isFolder: false, isSocket: true })
  const inGit = [
    ...repositories.flatMap((git) => gitControls.map((name) => join(git, name))),
    ...worktrees.flatMap((worktree) => worktreeControls.map((name) => join(worktree, name))),
  ]
  const shown = isReadOnly ? [...folders, ...facts.gitFolders].filter(isReplaced) : []
  return {
    ...(shown.length > 0 && { shown }),
    writable: isReadOnly ? [] : [...folders, ...facts.gitFolders],
    scratch,
    caches: caches.filter(({ path }) => !isReplaced(path)),
    hidden: [...secrets, ...sockets.filter((path) => !isOurs(path) && !isHidden(path)).map(asPlace)]
      .filter(({ path }) => !isReplaced(path))
      .toSorted(byPath),
    pinned: isReadOnly ? [] : [...repositories, ...worktrees].toSorted(),
    readOnly: isReadOnly ? [] : [...inGit, ...controls.map(({ path }) => path)].toSorted(),
    hiddenInside: [...(showsOwnSecrets ? [] : ownSecrets), ...sockets.filter(isOurs).map(asPlace)].toSorted(byPath),
  }
}

/** A folder comes before what is in it. */
function byPath(a: Place, b: Place): number {
  return a.path < b.path ? -1 : 1
}
