import { lstat, mkdir, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import type { Dirent } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isControlFile } from '../permissions/judge-path.ts'
import { exactPath } from '../permissions/paths/path-pattern.ts'
import { isSecretPath } from '../permissions/paths/secret-files.ts'
import { isInside } from '../util/is-inside.ts'
import { linkedGit, moduleFolders, worktreeFolders } from './git-folders.ts'
import type { Place, SandboxFacts } from './sandbox-policy.ts'

export interface SurveyOptions {
  /** The folders in which commands may write; the working folder is the first one. */
  folders: readonly string[]
  home: string
  /** A folder for what the sandbox keeps: temporary files, and what programs write to the home folder. */
  keep: string
  /** Our own data and settings. */
  own?: readonly string[]
}

/** Looks at what a sandbox must protect. It follows no links. */
export async function surveyMachine({ folders, home, keep, own = [] }: SurveyOptions): Promise<SandboxFacts> {
  const realHome = await realpath(home).catch(() => home)
  const scratch = join(keep, 'tmp')
  await mkdir(scratch, { recursive: true, mode: 0o700 })
  const inside = await surveyFolders(folders)
  const isOurs = ({ path }: Place): boolean => inside.folders.some((folder) => isInside(path, folder))
  const linked = inside.ownSecrets.filter((place) => !isOurs(place)).map(({ path }) => path)
  const secrets = await secretsOutside(realHome, [...own, keep, ...linked])
  return {
    scratch,
    ...inside,
    ownSecrets: unique(inside.ownSecrets.filter(isOurs)),
    secrets: secrets.filter((place) => !isOurs(place)),
    sockets: await socketsOfOthers({ scratch, home: realHome, files: inside.sockets }),
    caches: await cachesOf(realHome, join(keep, 'home')),
  }
}

interface InsideFacts {
  folders: string[]
  repositories: string[]
  worktrees: string[]
  gitFolders: string[]
  controls: Place[]
  links: { path: string; target: string }[]
  ownSecrets: Place[]
  /** Files of sockets, of any program. */
  sockets: string[]
}

/** What a sandbox must protect in the folders in which commands may write. */
export async function surveyFolders(folders: readonly string[]): Promise<InsideFacts> {
  const real = await Promise.all(folders.map((folder) => realpath(folder)))
  const inside: InsideFacts = {
    ...{ folders: real, repositories: [], worktrees: [], gitFolders: [] },
    ...{ controls: [], links: [], ownSecrets: [], sockets: [] },
  }
  for (const folder of real) {
    await surveyFolder(folder, inside)
    const linked = await linkedGit(folder)
    inside.gitFolders.push(...(linked?.writable ?? []))
    inside.repositories.push(...(linked?.repositories ?? []))
    inside.worktrees.push(...(linked?.worktrees ?? []))
  }
  inside.repositories.push(...(await Promise.all(inside.repositories.map(moduleFolders))).flat())
  inside.repositories = [...new Set(inside.repositories)]
  inside.worktrees.push(...(await Promise.all(inside.repositories.map(worktreeFolders))).flat())
  return inside
}

/**
 * Finds repositories, control files and secrets in a folder at any depth, whether git ignores them or not. Other programs do not read settings in
 * `node_modules`, so only repositories count there, and secrets that no package brought along. A package manager could not replace a package
 * with protected files in it.
 */
async function surveyFolder(root: string, found: InsideFacts): Promise<void> {
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const isPackage = `${folder.slice(root.length)}/`.includes('/node_modules/')
    const entries = await entriesOf(folder)
    // Git treats such a folder as a repository without a working tree, and runs what its settings name.
    if (['HEAD', 'config', 'refs'].every((name) => entries.some((entry) => entry.name === name))) {
      found.repositories.push(folder)
      // A command can make one of a working folder, which still has its own secrets and control files.
      if (folder !== root) continue
    }
    for (const entry of entries) {
      const path = join(folder, entry.name)
      const isControl = isControlFile(exactPath(path.slice(root.length) || '/'))
      if (entry.isSymbolicLink()) {
        if (isControl) found.links.push({ path, target: await readlink(path).catch(() => '') })
        // A link cannot be a mount point, so the box hides the file that it leads to.
        if (isSecretPath(path)) found.ownSecrets.push(...(await targetOf(path)))
        continue
      }
      if (entry.isSocket()) found.sockets.push(path)
      const place = { path, isFolder: entry.isDirectory() }
      if (entry.name === '.git' && place.isFolder) {
        found.repositories.push(path)
        continue
      }
      const isSecret = isSecretPath(path) && !(isPackage && (await cameWithPackage(path)))
      // A file can be both, such as `.npmrc`: then no command may read or change it.
      if (isControl && (!isPackage || entry.name === '.git')) found.controls.push(place)
      if (isSecret) found.ownSecrets.push(place)
      else if (place.isFolder) folders.push(path)
    }
  }
}

/** Extracting a package takes no longer. */
const extractionMs = 10_000

/** Whether a package brought this file along. All files of a package are made at once, so one that is younger is of the user. */
async function cameWithPackage(path: string): Promise<boolean> {
  const { birthtimeMs, mtimeMs } = await lstat(path).catch(() => ({ birthtimeMs: 0, mtimeMs: 0 }))
  for (let folder = dirname(path); basename(folder) !== 'node_modules'; folder = dirname(folder)) {
    const manifest = await lstat(join(folder, 'package.json')).catch(() => undefined)
    if (manifest) return Math.max(birthtimeMs, mtimeMs) <= manifest.birthtimeMs + extractionMs
  }
  return false
}

async function targetOf(link: string): Promise<Place[]> {
  const target = await realpath(link).catch(() => undefined)
  return target === undefined ? [] : placeAt(target)
}

/** Where secrets lie in a home folder, apart from the home folder itself. */
const dens = ['', '.config', '.docker', '.cargo', '.tapetree', '.local/share', '.config/gcloud']

async function secretsOutside(home: string, own: readonly string[]): Promise<Place[]> {
  const places: Place[] = []
  for (const den of dens) {
    for (const entry of await entriesOf(join(home, den))) {
      const path = join(home, den, entry.name)
      if (!isSecretPath(path)) continue
      places.push(...(entry.isSymbolicLink() ? await targetOf(path) : [{ path, isFolder: entry.isDirectory() }]))
    }
  }
  for (const path of [...systemSecrets, ...own]) places.push(...(await placeAt(path)))
  // The homes of other users; as root, all of them could be read.
  const homes = (await entriesOf('/home')).map(({ name }) => join('/home', name))
  for (const path of [...homes, '/root']) if (path !== home) places.push(...(await placeAt(path)))
  const outermost = places.filter(
    ({ path }) => !places.some((other) => other.path !== path && isInside(path, other.path)),
  )
  return unique(outermost)
}

function unique(places: readonly Place[]): Place[] {
  return [...new Map(places.map((place) => [place.path, place])).values()]
}

const systemSecrets = [
  '/etc/shadow',
  '/etc/shadow-',
  '/etc/gshadow',
  '/etc/gshadow-',
  '/etc/sudoers',
  '/etc/sudoers.d',
  '/etc/ssh',
  '/etc/ssl/private',
  '/var/spool/cron',
  '/var/lib/docker',
]

async function placeAt(path: string): Promise<Place[]> {
  const info = await lstat(path).catch(() => undefined)
  return info && !info.isSymbolicLink() ? [{ path, isFolder: info.isDirectory() }] : []
}

interface SocketSearch {
  scratch: string
  home: string
  /** Files of sockets in the working folders. Those of other commands in the sandbox are among them, and stay reachable. */
  files: readonly string[]
}

/** Sockets of programs outside of the sandbox that have a path outside of the folders that every box replaces. */
async function socketsOfOthers({ scratch, home, files }: SocketSearch): Promise<string[]> {
  const list = await readFile('/proc/net/unix', 'utf8').catch(() => '')
  const found: string[] = []
  const odd: OddSocket[] = []
  for (const line of list.split('\n').slice(1)) {
    // Names that begin with @ are not files.
    const [, inode = '', name] = /^(?:\S+ +){6}(\d+) ([^@].*)$/.exec(line) ?? []
    if (name === undefined) continue
    if (name.startsWith('/') && !name.startsWith('/proc/')) found.push(name)
    else odd.push({ inode, name })
  }
  found.push(...(await pathsOf(odd, home)))
  const unsure = odd.filter((each) => !placed.get(keyOf(each))?.isSure)
  const names = new Set(unsure.map(({ name }) => basename(name)))
  found.push(...files.filter((file) => names.has(basename(file))))
  const paths = new Set<string>()
  for (const path of new Set(found)) {
    if (/^\/(?:var\/)?(?:run|tmp)\//.test(path) || isInside(path, scratch)) continue
    const info = await lstat(path).catch(() => undefined)
    // By its real place, since a box cannot mount over a path with a link in it.
    if (info?.isSocket()) paths.add(join(await realpath(dirname(path)), basename(path)))
  }
  return [...paths].toSorted()
}

/** A socket that was bound by a relative path, or by one that only its process understands. */
interface OddSocket {
  inode: string
  name: string
}

function keyOf({ inode, name }: OddSocket): string {
  return `${inode} ${name}`
}

/** Where odd sockets are, so that each is looked for once. `isSure`: its process tells. Otherwise by name only. */
const placed = new Map<string, { paths: readonly string[]; isSure: boolean }>()

async function pathsOf(odd: readonly OddSocket[], home: string): Promise<string[]> {
  const keys = new Set(odd.map(keyOf))
  for (const key of placed.keys()) if (!keys.has(key)) placed.delete(key)
  const fresh = odd.filter((each) => !placed.has(keyOf(each)))
  if (fresh.length > 0) {
    const owners = await ownersOf(new Set(fresh.map(({ inode }) => inode)))
    let files: string[] | undefined
    for (const each of fresh) {
      const paths = await placesByOwner(each, owners.get(each.inode) ?? [])
      const isSure = paths.length > 0
      if (!isSure) files ??= await socketFilesBelow(home)
      const same = (files ?? []).filter((file) => basename(file) === basename(each.name))
      placed.set(keyOf(each), { paths: isSure ? paths : same, isSure })
    }
  }
  return odd.flatMap((each) => placed.get(keyOf(each))?.paths ?? [])
}

/** The processes that have these sockets open, as far as this user may see them. */
async function ownersOf(inodes: ReadonlySet<string>): Promise<Map<string, string[]>> {
  const owners = new Map<string, string[]>()
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const link = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      const [, inode = ''] = /^socket:\[(\d+)\]$/.exec(link) ?? []
      if (inodes.has(inode)) owners.set(inode, [...(owners.get(inode) ?? []), pid])
    }
  }
  return owners
}

/** A process may have left the folder in which it bound the socket. */
async function placesByOwner({ name }: OddSocket, pids: readonly string[]): Promise<string[]> {
  const paths: string[] = []
  for (const pid of pids) {
    const [, descriptor, below = ''] = /^\/proc\/(?:self|\d+)\/fd\/(\d+)\/(.+)$/.exec(name) ?? []
    const base = await readlink(`/proc/${pid}/${descriptor === undefined ? 'cwd' : `fd/${descriptor}`}`).catch(() => '')
    const path = join(base, descriptor === undefined ? name : below)
    const info = base === '' ? undefined : await lstat(path).catch(() => undefined)
    if (info?.isSocket()) paths.push(path)
  }
  return [...new Set(paths)]
}

const maxFoldersSearched = 2000
const maxDepthSearched = 4

async function socketFilesBelow(root: string): Promise<string[]> {
  const sockets: string[] = []
  const folders = [{ folder: root, depth: 0 }]
  for (let count = 0; count < maxFoldersSearched && folders.length > 0; count += 1) {
    const { folder, depth } = folders.shift() ?? { folder: root, depth: 0 }
    for (const entry of await entriesOf(folder)) {
      if (entry.isSocket()) sockets.push(join(folder, entry.name))
      if (entry.isDirectory() && depth < maxDepthSearched && entry.name !== 'node_modules')
        folders.push({ folder: join(folder, entry.name), depth: depth + 1 })
    }
  }
  return sockets
}

/** Folders in which package managers, compilers and test runners keep what they can fetch or build again. */
const cacheFolders = [
  '.cache',
  '.npm',
  '.yarn',
  '.pnpm-store',
  '.bun',
  '.gradle',
  '.m2',
  '.ivy2',
  '.nuget',
  '.cargo/registry',
  '.cargo/git',
  '.rustup/tmp',
  'go/pkg',
  '.local/share/pnpm',
  '.local/state',
  '.node-gyp',
  '.electron-gyp',
]

/** Only those that exist: a box cannot make folders in a home folder that is read-only. */
async function cachesOf(home: string, keep: string): Promise<{ path: string; instead: string }[]> {
  const caches: { path: string; instead: string }[] = []
  for (const name of cacheFolders) {
    const path = join(home, name)
    const [place] = await placeAt(path)
    if (!place?.isFolder) continue
    const instead = join(keep, name)
    await mkdir(instead, { recursive: true, mode: 0o700 })
    caches.push({ path, instead })
  }
  return caches
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch(() => [])
}
