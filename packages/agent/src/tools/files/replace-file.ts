import { replaceFile as replaceAt } from '@tapetree/session/util/replace-file'
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { HeldFolder } from './held-folder.ts'

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
  await replaceAt(folder.entry(name), bytes, {
    // The content of a private file must not be readable by others, not even for a moment.
    mode: before ? 0o600 : 0o666,
    prepare: async (file) => {
      if (before) await keepOwnerAndMode(file, before)
    },
    confirm,
  })
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
