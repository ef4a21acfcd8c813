import { closeSync, constants, openSync, readlinkSync, realpathSync } from 'node:fs'
import { readlink, realpath, stat, type FileHandle } from 'node:fs/promises'
import { shownName } from './paths.ts'
import { ToolProblem } from '../tool-problem.ts'

/** Where the kernel tells what a descriptor is: there a path that is swapped under our hands cannot deceive. */
export const hasDescriptorPaths = process.platform === 'linux' && knowsDescriptors()

export function descriptorPath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

/**
 * Throws unless the open file or folder is the one at the judged path. On Linux the kernel answers for the descriptor itself.
 * Elsewhere the path is looked at again, which leaves a moment in which it could be swapped and swapped back.
 */
export async function confirmPath(handle: FileHandle, path: string): Promise<void> {
  if (hasDescriptorPaths) {
    const actual = await readlink(descriptorPath(handle))
    if (actual === path) return
    // A file that was replaced by rename since it was opened was there when it was opened.
    if (actual === `${path} (deleted)` && (await handle.stat()).nlink === 0) return
    throw movedProblem(path)
  }
  const [real, there, opened] = await Promise.all([realpath(path), stat(path), handle.stat()])
  if (real !== path || there.ino !== opened.ino || there.dev !== opened.dev) throw movedProblem(path)
}

export function movedProblem(path: string): ToolProblem {
  return new ToolProblem(
    `${shownName(path)} leads elsewhere than when this call was allowed. Nothing was done; look again.`,
  )
}

/** Some sandboxes have no `/proc`, or one that tells of other paths. */
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
    // Then paths are looked at twice, as on other systems.
    return false
  }
}
