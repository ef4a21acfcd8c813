import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** What stands in a file, or why it cannot be used. Of anything else, such as a pipe or a device, nothing is read. */
export type RegularFile =
  | { type: 'read'; bytes: Buffer }
  | { type: 'not-found' }
  | { type: 'unreadable'; cause: Error }
  | { type: 'no-file' }
  | { type: 'too-large'; size: number }

/** Never waits for somebody to write, and reads no more than this. */
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
