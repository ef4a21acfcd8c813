import { createHash } from 'node:crypto'
import { sha256Of } from '../../util/request-hash.ts'
import { constants, type Stats } from 'node:fs'
import { access, lstat, type FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { movedProblem, openRegularFile } from './confirm-path.ts'
import { HeldFolder } from './held-folder.ts'
import { realPathOf } from './paths.ts'
import type { ToolContext } from '../tool.ts'
import { hasCode, ToolProblem } from '../tool-problem.ts'
import { replaceFile as replaceAt } from '@tapetree/session/util/replace-file'

/** Contents up to this size are stored with the session. */
const maxKeptBytes = 1024 * 1024
/** Files up to this size are held in memory. */
export const maxHeldBytes = 32 * 1024 * 1024

export interface FileChange<Content extends { bytes: Uint8Array }> {
  /** As the model wrote it. */
  given: string
  /** As it was judged. */
  path: string
  /** If set, no folders are created for it. */
  isThere?: boolean
  /** Returns the new content; throws a `ToolProblem` to change nothing. */
  content: (before: FileBefore | undefined) => Content | Promise<Content>
}

export interface FileBefore {
  stats: Stats
  sha256: string
  /** Absent if the file is too large to hold. */
  bytes: Buffer | undefined
}

/**
 * Changes a file and records it, with its content before and after. The old content is stored before it is
 * replaced.
 */
export async function changeFile<Content extends { bytes: Uint8Array }>(
  change: FileChange<Content>,
  context: ToolContext,
): Promise<{ before: FileBefore | undefined; after: Content }> {
  return inTurn(change.path, async () => {
    context.signal.throwIfAborted()
    const place = dirname(change.path)
    await using folder = await (change.isThere ? HeldFolder.open(place) : HeldFolder.make(place))
    const before = await readBefore(folder, change.path, context.signal)
    const after = await change.content(before)
    await keep(before?.bytes, context)
    await keep(after.bytes, context)
    await replaceFile({
      folder,
      name: basename(change.path),
      bytes: after.bytes,
      before: before?.stats,
      confirm: async () => {
        context.signal.throwIfAborted()
        await confirmUnchanged(folder, change.path, before)
        if (realPathOf(change.given, context) !== change.path) throw movedProblem(change.path)
        await folder.confirm()
      },
    })
    await context.append({
      type: 'file_write',
      fileWrite: {
        path: change.path,
        size: after.bytes.length,
        ...(before && { sha256Before: before.sha256 }),
        sha256After: sha256Of(after.bytes),
        runId: context.runId,
        callId: context.callId,
      },
    })
    return { before, after }
  })
}

/** Checks whether a change is possible, without making it. Throws as `changeFile` would. */
export async function previewChange<Content extends { bytes: Uint8Array }>(
  { path, isThere, content }: FileChange<Content>,
  { signal }: Pick<ToolContext, 'signal'>,
): Promise<void> {
  const place = dirname(path)
  await using folder = await (isThere ? HeldFolder.open(place) : nearestFolder(place))
  await access(folder.path, constants.W_OK)
  await content(folder.path === place ? await readBefore(folder, path, signal) : undefined)
}

/** The folder, or its nearest existing ancestor: missing folders below it would be created. */
async function nearestFolder(path: string): Promise<HeldFolder> {
  try {
    return await HeldFolder.open(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT') || dirname(path) === path) throw error
    return nearestFolder(dirname(path))
  }
}

async function readBefore(folder: HeldFolder, path: string, signal: AbortSignal): Promise<FileBefore | undefined> {
  await using file = await openBefore(folder, path)
  if (!file) return undefined
  const stats = await file.stat()
  if (stats.size > maxHeldBytes) return { stats, sha256: await sha256OfFile(file, signal), bytes: undefined }
  const bytes = await file.readFile()
  return { stats, sha256: sha256Of(bytes), bytes }
}

async function openBefore(folder: HeldFolder, path: string): Promise<FileHandle | undefined> {
  try {
    return await openRegularFile(path, folder.entry(basename(path)))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function confirmUnchanged(folder: HeldFolder, path: string, before: FileBefore | undefined): Promise<void> {
  const now = await lstat(folder.entry(basename(path))).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  if (!now && !before) return
  if (now?.isSymbolicLink()) throw movedProblem(path)
  const [left, right] = [now, before?.stats]
  if (left && right && left.ino === right.ino && left.size === right.size && left.mtimeMs === right.mtimeMs) return
  throw new ToolProblem(`${path} was changed by another program just now, so nothing was written. Read it again.`)
}

async function keep(bytes: Uint8Array | undefined, context: ToolContext): Promise<void> {
  if (bytes && bytes.length <= maxKeptBytes) await context.putBlob(bytes)
}

async function sha256OfFile(file: FileHandle, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of file.createReadStream({ autoClose: false, signal })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

const last = new Map<string, Promise<unknown>>()

/** Serializes changes to one file, by its real path. Other processes are not excluded. */
async function inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = last.get(path)
  const result = before ? before.then(work, work) : work()
  last.set(path, result)
  try {
    return await result
  } finally {
    if (last.get(path) === result) last.delete(path)
  }
}

interface NewContent {
  folder: HeldFolder
  name: string
  bytes: Uint8Array
  /** The replaced file: its mode and owner are kept. */
  before?: Stats | undefined
  /** The last chance to throw; nothing has changed until it returns. */
  confirm: () => Promise<void>
}

/**
 * Replaces a file atomically. A symbolic link of that name is replaced, not followed, and other hard links of
 * the old file keep the old content.
 */
async function replaceFile({ folder, name, bytes, before, confirm }: NewContent): Promise<void> {
  await replaceAt(folder.entry(name), bytes, {
    // The content of a private file must not be readable by others, not even briefly.
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
      // Only root may change the owner; otherwise the file belongs to this user.
    })
  }
  // Drops setuid and setgid, as a write in place does.
  await file.chmod(before.mode & 0o777)
}
