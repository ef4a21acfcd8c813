import { constants } from 'node:fs'
import { lstat, open, type FileHandle } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { confirmPath } from './confirm-path.ts'
import { shownName } from './paths.ts'
import { ToolProblem } from '../tool-problem.ts'

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
    throw new ToolProblem(
      `${shownName(path)} is a symbolic link that leads in circles, or that was put there just now.`,
    )
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
