import { replaceFile } from '@tapetree/session/util/replace-file'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Replaces a file that only its owner may read, and makes its folder if it is missing. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await replaceFile(path, text)
}

/** Reads, changes and replaces a private file while no other process does, so that no change is lost. */
export async function changePrivateFile<T>(path: string, change: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // Loaded when it is needed: importing the agent must stay cheap.
  const { withFileLock } = await import('@tapetree/session/stores/file')
  return withFileLock(path, change)
}
