import { lstat, mkdir, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import type { Dirent } from 'node:fs'
import { dirname, join } from 'node:path'
import { isControlFile } from '../permissions/judge-path.ts'
import { exactPath } from '../permissions/paths/path-pattern.ts'
import { isSecretPath } from '../permissions/paths/secret-files.ts'
import { isInside } from '../util/is-inside.ts'
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
    sockets: await socketsOfOthers(scratch),
    caches: await cachesOf(realHome, join(keep, 'home')),
  }
}

interface InsideFacts {
  folders: string[]
  repositories: string[]
  controls: Place[]
  links: { path: string; target: string }[]
  ownSecrets: Place[]
}

/** What a sandbox must protect in the folders in which commands may write. */
export async function surveyFolders(folders: readonly string[]): Promise<InsideFacts> {
  const real = await Promise.all(folders.map((folder) => realpath(folder)))
  const inside: InsideFacts = { folders: real, repositories: [], controls: [], links: [], ownSecrets: [] }
  for (const folder of real) await surveyFolder(folder, inside)
  return inside
}

/**
 * Finds repositories, control files and secrets in a folder at any depth, whether git ignores them or not. Packages in `node_modules` are public,
 * and other programs do not read settings there, so only repositories count in them. A package manager could not replace a package with
 * protected files in it.
 */
async function surveyFolder(root: string, found: InsideFacts): Promise<void> {
  const folders = [root]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const isPackage = folder.slice(root.length).includes('/node_modules')
    const entries = await entriesOf(folder)
    // Git treats such a folder as a repository without a working tree, and runs what its settings name.
    if (['HEAD', 'config', 'refs'].every((name) => entries.some((entry) => entry.name === name))) {
      found.repositories.push(folder)
      continue
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
      const place = { path, isFolder: entry.isDirectory() }
      if (entry.name === '.git' && place.isFolder) {
        found.repositories.push(path)
        continue
      }
      const isSecret = !isPackage && isSecretPath(path)
      // A file can be both, such as `.npmrc`: then no command may read or change it.
      if (isControl && (!isPackage || entry.name === '.git')) found.controls.push(place)
      if (isSecret) found.ownSecrets.push(place)
      else if (place.isFolder) folders.push(path)
    }
  }
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
      if (isSecretPath(path) && !entry.isSymbolicLink()) places.push({ path, isFolder: entry.isDirectory() })
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

/** Sockets that have a path outside of the folders that every box replaces. */
async function socketsOfOthers(scratch: string): Promise<string[]> {
  const list = await readFile('/proc/net/unix', 'utf8').catch(() => '')
  const paths = new Set<string>()
  for (const line of list.split('\n')) {
    const path = / (\/.+)$/.exec(line)?.[1]
    if (path === undefined || /^\/(?:var\/)?(?:run|tmp)\//.test(path) || isInside(path, scratch)) continue
    const info = await lstat(path).catch(() => undefined)
    // By its real place, since a box cannot mount over a path with a link in it.
    if (info?.isSocket()) paths.add(join(await realpath(dirname(path)), path.slice(path.lastIndexOf('/') + 1)))
  }
  return [...paths].toSorted()
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
