import { createHash, randomBytes } from 'node:crypto'
import { dirname, join } from 'node:path'
import { isSha256 } from '../../line/large-values.ts'
import type { BlobReference } from '../../line/message.ts'
import type { FilePort } from './file-port.ts'
import { readRange } from './recover.ts'

/** Stores bytes under their hash: write, sync, rename, sync the folder. The same content is stored once. */
export async function putBlobFile(port: FilePort, folder: string, bytes: Uint8Array): Promise<BlobReference> {
  const sha256 = hashOf(bytes)
  const path = join(folder, sha256)
  if (!port.exists(folder)) await makeBlobFolder(port, folder)
  if (!(await getBlobFile(port, folder, sha256))) await replaceFile(port, path, bytes, { sync: true })
  await port.syncFolder(folder)
  return { sha256, size: bytes.length }
}

/** Removes the folder again if its name could not be synced, so that the next blob does not take it for durable. */
async function makeBlobFolder(port: FilePort, folder: string): Promise<void> {
  port.makeFolder(folder)
  try {
    await port.syncFolder(dirname(folder))
  } catch (error) {
    port.remove(folder)
    throw error
  }
}

/** The bytes, if they exist and still match their hash. */
export async function getBlobFile(port: FilePort, folder: string, sha256: string): Promise<Uint8Array | undefined> {
  const path = join(folder, sha256)
  if (!isSha256(sha256) || !port.exists(path)) return undefined
  const fd = port.openRead(path)
  try {
    const bytes = await readRange(port, fd, { from: 0, to: port.size(fd) })
    return hashOf(bytes) === sha256 ? bytes : undefined
  } finally {
    port.close(fd)
  }
}

/** Replaces a file atomically: writes under a random name, then renames. Leaves nothing behind on failure. */
export async function replaceFile(
  port: FilePort,
  path: string,
  content: Uint8Array | string,
  options: { sync: boolean },
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}${temporaryEnding}`
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const fd = port.create(temporary)
  try {
    try {
      if (port.write(fd, bytes) < bytes.length) throw new Error(`could not write all of ${path}`)
      if (options.sync) await port.dataSync(fd)
    } finally {
      port.close(fd)
    }
    await port.rename(temporary, path)
  } catch (error) {
    port.remove(temporary)
    throw error
  }
}

const temporaryEnding = '.tmp'

/** Removes temporary files of a killed writer. Call with the lock held. */
export function removeTemporaryFiles(port: FilePort, folder: string): void {
  for (const name of port.names(folder)) if (name.endsWith(temporaryEnding)) port.remove(join(folder, name))
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
