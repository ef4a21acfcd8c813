import { hostname } from 'node:os'
import type { Owner } from '../../log/log-store.ts'
import { replaceFile } from './blob-files.ts'
import type { FilePort } from './file-port.ts'
import { readRange } from './recover.ts'

/** Tells other processes who writes and where that process answers. Informational: the lock is authoritative. */
export async function announceOwner(port: FilePort, path: string, owner: Omit<Owner, 'reason'>): Promise<void> {
  try {
    await replaceFile(port, path, `${JSON.stringify(owner)}\n`, { sync: false })
  } catch {
    // A full disk must not lock the owner out of its session.
  }
}

/**
 * The owner named by the file, unless its process is known to have ended. Processes of other machines count as
 * alive.
 */
export async function livingOwner(port: FilePort, path: string, isHeldHere: () => boolean): Promise<Owner | undefined> {
  if (!port.exists(path)) return undefined
  const owner = await readOwner(port, path)
  if (owner.host !== hostname() || owner.process === undefined) return owner
  const pid = Number(owner.process)
  // Process ids are reused, most likely our own: a restarted container counts from one.
  return (pid === process.pid ? isHeldHere() : isRunning(pid)) ? owner : undefined
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export async function readOwner(port: FilePort, path: string): Promise<Owner> {
  try {
    const fd = port.openRead(path)
    const bytes = await readRange(port, fd, { from: 0, to: maxOwnerBytes }).finally(() => port.close(fd))
    const { host, process: pid, address } = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>
    return {
      reason: `Process ${String(pid)} on ${String(host)} is writing this session.`,
      host: String(host),
      process: String(pid),
      ...(typeof address === 'string' && { address }),
    }
  } catch {
    return { reason: 'Another process is writing this session.' }
  }
}

const maxOwnerBytes = 4096
