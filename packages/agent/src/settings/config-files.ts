import { constants } from 'node:fs'
import { lstat, open, mkdir, type FileHandle } from 'node:fs/promises'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { dirname, isAbsolute, join } from 'node:path'

export type BoundedRead =
  | { type: 'read'; bytes: Uint8Array; mode: number; uid: number }
  | { type: 'missing' }
  /** A sentence with the reason. */
  | { type: 'refused'; reason: string }

/**
 * A whole regular file up to this size. Checked before it is opened and again after: opening a pipe would block
 * forever, opening a device may have side effects. A link as the last part of the path is not followed.
 */
export async function readBounded(path: string, maxBytes: number): Promise<BoundedRead> {
  let file: FileHandle | undefined
  try {
    const kind = refusal(await lstat(path), maxBytes)
    if (kind !== undefined) return { type: 'refused', reason: kind }
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    const stats = await file.stat()
    const changed = refusal(stats, maxBytes)
    if (changed !== undefined) return { type: 'refused', reason: changed }
    const bytes = await readAtMost(file, maxBytes)
    if (!bytes) return { type: 'refused', reason: tooLarge(maxBytes) }
    return { type: 'read', bytes, mode: stats.mode, uid: stats.uid }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { type: 'missing' }
    return { type: 'refused', reason: `It cannot be read (${code ?? 'unknown error'}).` }
  } finally {
    await file?.close()
  }
}

interface Kind {
  size: number
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
}

function refusal(stats: Kind, maxBytes: number): string | undefined {
  if (stats.isSymbolicLink()) return 'It is a link.'
  if (stats.isDirectory()) return 'It is a folder.'
  if (!stats.isFile()) return 'It is not a regular file.'
  return stats.size > maxBytes ? tooLarge(maxBytes) : undefined
}

function tooLarge(maxBytes: number): string {
  return `It is larger than ${Math.floor(maxBytes / 1024)} KiB.`
}

/** A file may grow while it is read. */
async function readAtMost(file: FileHandle, maxBytes: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = []
  let total = 0
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(64 * 1024))
    if (bytesRead === 0) return Buffer.concat(chunks)
    total += bytesRead
    if (total > maxBytes) return undefined
    chunks.push(buffer.subarray(0, bytesRead))
  }
}

/** Replaces a file that only its owner may read, and creates its folder if it is missing. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await replaceFile(path, text)
}

/** Reads, changes and replaces a private file under a lock, so that no change is lost. */
export async function changePrivateFile<T>(path: string, change: () => Promise<T>): Promise<T> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // Loaded on demand: importing the agent must stay cheap.
  const { withFileLock } = await import('@tapetree/session/stores/file')
  return withFileLock(path, change)
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The folder of the user's settings, credentials and grants. A relative path in a variable is ignored: it would mean
 * another folder each time.
 */
export function configFolder({ home, env }: { home: string; env: Environment }): string {
  const { TAPETREE_HOME: own, XDG_CONFIG_HOME: shared } = env
  if (own !== undefined && isAbsolute(own)) return own
  return join(shared !== undefined && isAbsolute(shared) ? shared : join(home, '.config'), 'tapetree')
}

export type SettingsErrorCode = 'cannot-trust' | 'insecure-file' | 'malformed-file' | 'cannot-store' | 'sandbox-missing'

export class SettingsError extends Error {
  override readonly name = 'SettingsError'
  readonly code: SettingsErrorCode

  constructor(code: SettingsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
