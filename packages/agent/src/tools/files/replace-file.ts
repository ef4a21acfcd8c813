import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { open, rename, unlink, type FileHandle } from 'node:fs/promises'
import type { HeldFolder } from './held-folder.ts'

const { O_CREAT, O_EXCL, O_WRONLY } = constants
const flags = O_WRONLY | O_CREAT | O_EXCL | (constants.O_NOFOLLOW ?? 0)

export interface NewContent {
  folder: HeldFolder
  name: string
  bytes: Uint8Array
  /** The file that is replaced: its mode and owner are kept. */
  before?: Stats | undefined
  /** The last chance to throw; nothing has changed until it returns. */
  confirm: () => Promise<void>
}

/**
 * Puts a file in its place whole, or not at all. A link of that name is replaced and not followed, and other hard links of the
 * old file keep the old content.
 */
export async function replaceFile({ folder, name, bytes, before, confirm }: NewContent): Promise<void> {
  const temporary = folder.entry(`.tapetree-${randomBytes(8).toString('hex')}.tmp`)
  // The content of a private file must not be readable by others, not even for a moment.
  const file = await open(temporary, flags, before ? 0o600 : 0o666)
  try {
    try {
      await file.writeFile(bytes)
      if (before) await keepOwnerAndMode(file, before)
      await file.sync()
    } finally {
      await file.close()
    }
    await confirm()
    await rename(temporary, folder.entry(name))
  } catch (error) {
    await unlink(temporary).catch(() => {
      // What went wrong before is what counts.
    })
    throw error
  }
  await folder.sync()
}

async function keepOwnerAndMode(file: FileHandle, before: Stats): Promise<void> {
  const now = await file.stat()
  if (now.uid !== before.uid || now.gid !== before.gid) {
    await file.chown(before.uid, before.gid).catch(() => {
      // Only root may give a file away; then it belongs to whoever wrote it.
    })
  }
  // Rights to act as the owner are not for new content, as with a write in place.
  await file.chmod(before.mode & 0o777)
}
