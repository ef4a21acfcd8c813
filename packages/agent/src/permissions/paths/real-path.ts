import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** As many links as the kernel follows before it gives up. */
const maxLinks = 40

/**
 * Where a path really leads, also when its last parts do not exist yet: a link to a file that is not there leads to that file.
 * A path that leads in circles stays as it is; nothing can be read or written there.
 */
export function realPath(path: string): string {
  const whole = resolve(path)
  // These lead each process to files of its own.
  if (/^\/dev\/(?:fd\/\d+|stdin|stdout|stderr)$/.test(whole)) return whole
  return follow(whole, maxLinks) ?? whole
}

function follow(path: string, linksLeft: number): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    // It does not exist, or we may not look: its parent may still be a link.
  }
  if (linksLeft === 0) return undefined
  const target = linkTarget(path)
  if (target !== undefined) return follow(resolve(dirname(path), target), linksLeft - 1)
  const folder = dirname(path)
  if (folder === path) return path
  const realFolder = follow(folder, linksLeft)
  return realFolder === undefined ? undefined : join(realFolder, basename(path))
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined
  } catch {
    return undefined // nothing is there
  }
}
