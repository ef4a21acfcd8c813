import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { open, rename, rm, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const { O_CREAT, O_EXCL, O_WRONLY, O_RDONLY } = constants
// Windows has no O_NOFOLLOW.
const flags = O_WRONLY | O_CREAT | O_EXCL | (constants.O_NOFOLLOW ?? 0)

export interface ReplaceOptions {
  /**
   * Mode of the new file, reduced by the umask. By default only the owner can read and write it, whatever the
   * umask.
   */
  mode?: number
  /** Prefix of the temporary file, which lies in the same folder. */
  prefix?: string
  /** Changes the new file after its content is written, for example its owner. */
  prepare?: (file: FileHandle) => Promise<void>
  /** Called just before the rename; throw to keep the old file. */
  confirm?: () => Promise<void>
}

/**
 * Replaces or creates a file atomically: readers see the old content or the new, also after a power cut. When
 * it resolves, file and name are durable; when it rejects, no temporary file is left. A symbolic link at the
 * path is replaced, not followed.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  { mode, prefix = '.tapetree-', prepare, confirm }: ReplaceOptions = {},
): Promise<void> {
  const folder = dirname(path)
  // An unguessable name, so that no other user can place a file or a link there first.
  const temporary = join(folder, `${prefix}${randomBytes(12).toString('hex')}.tmp`)
  const file = await open(temporary, flags, mode ?? 0o600)
  try {
    try {
      if (mode === undefined) await file.chmod(0o600)
      await file.writeFile(content)
      await prepare?.(file)
      await file.sync()
    } finally {
      await file.close()
    }
    await confirm?.()
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {
      // Keep the first error: it names the cause.
    })
    throw error
  }
  await syncFolder(folder)
}

/**
 * Without it a power cut may restore the old file. Windows cannot sync folders; its file systems order the
 * rename themselves.
 */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  await using folder = await open(path, O_RDONLY)
  await folder.sync()
}
