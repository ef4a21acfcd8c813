import { closeSync, constants, openSync, readlinkSync, realpathSync, type Stats } from 'node:fs'
import { readlink, realpath, stat, lstat, open, type FileHandle } from 'node:fs/promises'
import { shownName } from './paths.ts'
import { ToolProblem } from '../tool-problem.ts'

/** True if the kernel reports the path of a descriptor: then a path that is swapped concurrently cannot deceive. */
export const hasDescriptorPaths = process.platform === 'linux' && knowsDescriptors()

export function descriptorPath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

/**
 * Throws unless the open file or folder is the one at the judged path. On Linux the kernel reports the path of
 * the descriptor. Elsewhere the path is checked again, which leaves a short race.
 */
export async function confirmPath(handle: FileHandle, path: string): Promise<void> {
  if (hasDescriptorPaths) {
    const actual = await readlink(descriptorPath(handle))
    if (actual === path) return
    // A file that was replaced by rename since it was opened did exist when it was opened.
    if (actual === `${path} (deleted)` && (await handle.stat()).nlink === 0) return
    throw movedProblem(path)
  }
  const [real, there, opened] = await Promise.all([realpath(path), stat(path), handle.stat()])
  if (real !== path || there.ino !== opened.ino || there.dev !== opened.dev) throw movedProblem(path)
}

export function movedProblem(path: string): ToolProblem {
  return new ToolProblem(
    `${shownName(path)} has a different target now than when this call was allowed. Nothing was done; check the path again.`,
  )
}

/** Some sandboxes have no `/proc`, or one that reports other paths. */
function knowsDescriptors(): boolean {
  try {
    const folder = realpathSync.native(import.meta.dirname)
    const descriptor = openSync(folder, constants.O_RDONLY)
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === folder
    } finally {
      closeSync(descriptor)
    }
  } catch {
    // Then paths are checked twice, as on other systems.
    return false
  }
}

// Windows does not have the last two.
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Opens a file for reading at its judged path. Pipes, devices and the like are rejected without opening them:
 * opening alone may block or have effects.
 */
export async function openRegularFile(path: string, place = path): Promise<FileHandle> {
  refuseSpecial(await lstat(place), path)
  const handle = await open(place, flags)
  try {
    refuseSpecial(await handle.stat(), path)
    await confirmPath(handle, path)
  } catch (error) {
    await handle.close()
    throw error
  }
  return handle
}

function refuseSpecial(stats: Stats, path: string): void {
  if (stats.isFile()) return
  if (stats.isSymbolicLink()) {
    throw new ToolProblem(`${shownName(path)} is a cyclic symbolic link, or was replaced by a link just now.`)
  }
  if (stats.isDirectory()) throw new ToolProblem(`${shownName(path)} is a folder. Use ls to see what is in it.`)
  throw new ToolProblem(`${shownName(path)} is ${specialKind(stats)}, not a regular file.`)
}

function specialKind(stats: Stats): string {
  if (stats.isFIFO()) return 'a pipe'
  if (stats.isSocket()) return 'a socket'
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return 'a device'
  return 'something special'
}
