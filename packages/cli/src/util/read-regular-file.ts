import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** The content of a regular file, or why it cannot be used. Never reads anything else, such as a pipe or a device. */
export type RegularFile =
  | { type: 'read'; bytes: Buffer }
  | { type: 'not-found' }
  | { type: 'unreadable'; cause: Error }
  | { type: 'no-file' }
  | { type: 'too-large'; size: number }

/** Never blocks on a pipe, and reads at most this many bytes. */
export async function readRegularFile(
  path: string,
  { maxBytes, signal }: { maxBytes: number; signal?: AbortSignal },
): Promise<RegularFile> {
  signal?.throwIfAborted()
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: Error) => error)
  if (handle instanceof Error) {
    const { code = '' } = handle as NodeJS.ErrnoException
    return ['ENOENT', 'ENOTDIR'].includes(code) ? { type: 'not-found' } : { type: 'unreadable', cause: handle }
  }
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return { type: 'no-file' }
    if (stat.size > maxBytes) return { type: 'too-large', size: stat.size }
    return { type: 'read', bytes: await handle.readFile({ ...(signal && { signal }) }) }
  } finally {
    await handle.close()
  }
}
