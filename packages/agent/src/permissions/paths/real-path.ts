import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** As many links as the kernel follows before it gives up. */
const maxLinks = 40

/**
 * Where a path really leads, resolved one name after the other as the kernel does: `..` behind a link leads above the target of the
 * link, so do not normalize the path first. Names that do not exist stay as they are: a link to a missing file leads to that file.
 * A path that leads in circles is only normalized; nothing can be read or written there.
 */
export function realPath(path: string): string {
  const whole = resolve(path)
  // These lead each process to files of its own.
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

/** A link such as `/proc/self/cwd` leads each process elsewhere. It is not followed, and neither is `..` behind it. */
function isProcessLink(path: string): boolean {
  return /^\/proc\/[^/]+\/(?:task\/[^/]+\/)?(?:cwd|root|exe|(?:fd|map_files|ns)\/[^/]+)(?:\/|$)/.test(path)
}

/** Some disks do not tell upper and lower case apart: what exists gets the name that the disk has for it. */
function withCaseOnDisk(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(withCaseOnDisk(folder), basename(path))
  }
}

/** The names of a path, last one first. */
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
    return undefined // nothing is there
  }
}
