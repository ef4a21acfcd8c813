import type { Owner } from '../../log-store.ts'
import { replaceFile } from './blob-files.ts'
import type { FilePort } from './file-port.ts'
import { readRange } from './recover.ts'

/** Tells other processes who writes and where they answer. The lock is the truth; this file is a courtesy. */
export async function announceOwner(port: FilePort, path: string, owner: Omit<Owner, 'reason'>): Promise<void> {
  try {
    await replaceFile(port, path, `${JSON.stringify(owner)}\n`, { sync: false })
  } catch {
    // A full disk must not keep the owner out of its session.
  }
}

export async function readOwner(port: FilePort, path: string): Promise<Owner> {
  try {
    const fd = port.openRead(path)
    const bytes = await readRange(port, fd, { from: 0, to: maxOwnerBytes }).finally(() => port.close(fd))
    const { host, process, socket } = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>
    return {
      reason: `Process ${String(process)} on ${String(host)} is writing this session.`,
      host: String(host),
      process: String(process),
      ...(typeof socket === 'string' && { socket }),
    }
  } catch {
    return { reason: 'Another process is writing this session.' }
  }
}

const maxOwnerBytes = 4096
