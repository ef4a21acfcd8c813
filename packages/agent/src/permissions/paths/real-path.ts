import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** The limit of the kernel. */
const maxLinks = 40

/**
 * The real target of a path, resolved name by name as the kernel does: `..` behind a link is the parent of the target,
 * so do not normalize the path first. Missing names stay as they are: a link to a missing file resolves to that file. A
 * cyclic path is only normalized; nothing can be read or written there.
 */
export function realPath(path: string): string {
  const whole = resolve(path)
  // Their targets differ for each process.
  if (/^\/dev\/(?:fd\/\d+|stdin|stdout|stderr)$/.test(whole)) return whole
  let linksLeft = maxLinks
  let real = '/'
  const rest = namesOf(joinRaw(process.cwd(), path))
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    if (name === '..') {
      real = isProcessLink(real) ? real : dirname(real)
      continue
    }
    const next = join(real, name)
    const target = isProcessLink(next) ? undefined : linkTarget(next)
    if (target === undefined) {
      real = next
      continue
    }
    linksLeft -= 1
    if (linksLeft < 0) return whole
    if (target.startsWith('/')) real = '/'
    rest.push(...namesOf(target))
  }
  return real.startsWith('/proc/') ? real : withCaseOnDisk(real)
}

/** Appends a path to a folder and keeps each `..`, so that `realPath` can resolve it. */
export function joinRaw(folder: string, path: string): string {
  return path.startsWith('/') ? path : `${folder}/${path}`
}

/**
 * The target of a link such as `/proc/self/cwd` differs for each process. Neither it nor `..` behind it is followed.
 */
function isProcessLink(path: string): boolean {
  return /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(?:cwd|root|exe|(?:fd|map_files|ns)\/[^/]+)(?:\/|$)/.test(path)
}

/** Some file systems ignore case: an existing path gets its name on disk. */
function withCaseOnDisk(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(withCaseOnDisk(folder), basename(path))
  }
}

/** The names of a path, in reverse order. */
function namesOf(path: string): string[] {
  return path
    .split('/')
    .filter((name) => name !== '' && name !== '.')
    .reverse()
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined
  } catch {
    return undefined // it does not exist
  }
}
