import { constants } from 'node:fs'
import { open, stat, realpath, opendir, type FileHandle } from 'node:fs/promises'
import { confirmPath } from '../tools/files/confirm-path.ts'
import { oneLine } from '../util/visible-text.ts'
import { isInside } from '../util/is-inside.ts'
import { sep } from 'node:path'

export type LimitedText =
  /** `realPath` identifies the file. */
  | { type: 'text'; text: string; isCut: boolean; realPath: string }
  | { type: 'missing' }
  | { type: 'refused'; problem: string }

export interface ReadLimits {
  maxBytes: number
  whenLonger: 'cut' | 'refuse'
  /** A folder that symbolic links must not leave, without links itself. */
  within?: string
}

// Windows lacks the last two flags.
const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * The text of an untrusted file, with plain line feeds and no byte order mark. Never waits for a pipe, never opens a
 * device, never reads more than the limit.
 */
export async function readLimited(path: string, { maxBytes, whenLonger, within }: ReadLimits): Promise<LimitedText> {
  const place = await realPlaceOf(path, within)
  if (place.type !== 'found') return place
  const { realPath } = place
  const leaveOut = (why: string): LimitedText => ({
    type: 'refused',
    problem: `${oneLine(path)} was left out: ${why}.`,
  })
  try {
    // Checked before it is opened: opening a device may have side effects.
    if (!(await stat(realPath)).isFile()) return leaveOut('it is not a regular file')
    await using handle = await open(realPath, flags)
    if (!(await handle.stat()).isFile()) return leaveOut('it is not a regular file')
    if (!(await isStillAt(handle, realPath))) return leaveOut('it was moved while it was opened')
    const bytes = await readUpTo(handle, maxBytes + 1)
    const isCut = bytes.length > maxBytes
    if (isCut && whenLonger === 'refuse') return leaveOut(`it has more than ${maxBytes} bytes`)
    const text = decodeText(bytes.subarray(0, maxBytes), { isCut })
    return text === undefined ? leaveOut('it is not text in UTF-8') : { type: 'text', text, isCut, realPath }
  } catch (error) {
    return isMissing(error) ? { type: 'missing' } : { type: 'refused', problem: unreadable(path, error) }
  }
}

/** A folder of the path may have become a link since the check. */
async function isStillAt(handle: FileHandle, realPath: string): Promise<boolean> {
  return confirmPath(handle, realPath).then(
    () => true,
    () => false,
  )
}

async function readUpTo(handle: FileHandle, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await handle.read(bytes, filled, length - filled, filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

function decodeText(bytes: Uint8Array, { isCut }: { isCut: boolean }): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    // A truncated character is dropped; without truncation it is an error.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: isCut })
    return text.replaceAll('\r\n', '\n')
  } catch {
    // The decoder throws only if the text is not UTF-8.
    return undefined
  }
}

type RealPlace = { type: 'found'; realPath: string } | { type: 'missing' } | { type: 'refused'; problem: string }

/**
 * The target of a path. With `within`, which has no symbolic links itself, a path that leads out of that folder is
 * rejected.
 */
async function realPlaceOf(path: string, within?: string): Promise<RealPlace> {
  let realPath: string
  try {
    realPath = await realpath(path)
  } catch (error) {
    return isMissing(error) ? { type: 'missing' } : { type: 'refused', problem: unreadable(path, error) }
  }
  if (within === undefined || isInside(realPath, within)) return { type: 'found', realPath }
  return { type: 'refused', problem: `${oneLine(path)} was left out: it leads out of ${oneLine(within)}.` }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error))
}

function unreadable(path: string, error: unknown): string {
  return `${oneLine(path)} was left out: it cannot be read (${codeOf(error)}).`
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'unknown error'
}

export interface FolderListing {
  /** Sorted, without hidden ones. */
  names: readonly string[]
  problems: readonly string[]
}

const maxNames = 1000

/** The names in a folder; none if it does not exist. With `within`, a folder that leads out of that one is rejected. */
export async function listFolder(path: string, within?: string): Promise<FolderListing> {
  const place = await realPlaceOf(path, within)
  if (place.type === 'missing') return { names: [], problems: [] }
  if (place.type === 'refused') return { names: [], problems: [place.problem] }
  const names: string[] = []
  try {
    for await (const { name } of await opendir(place.realPath)) {
      if (name.startsWith('.')) continue
      if (names.length === maxNames) {
        const problem = `${oneLine(path)} has more than ${maxNames} entries; some of them were left out.`
        return { names: names.sort(), problems: [problem] }
      }
      names.push(name)
    }
  } catch (error) {
    return { names: [], problems: isMissing(error) ? [] : [unreadable(path, error)] }
  }
  return { names: names.sort(), problems: [] }
}

/** Files as the user trusted them, by absolute path. */
export type TrustedContent = ReadonlyMap<string, { bytes: Uint8Array; realPath: string }>

/** Like `listFolder`, for trusted content. */
export function listTrusted(content: TrustedContent, folder: string): FolderListing {
  const start = folder + sep
  const inside = [...content.keys()].filter((path) => path.startsWith(start))
  const names = new Set(inside.map((path) => path.slice(start.length).split(sep, 1)[0] ?? ''))
  return { names: [...names].filter((name) => !name.startsWith('.')).sort(), problems: [] }
}

/** Like `readLimited`, for trusted content. */
export function readTrusted(content: TrustedContent, path: string, maxBytes: number): LimitedText {
  const file = content.get(path)
  if (!file) return { type: 'missing' }
  const { bytes, realPath } = file
  const leaveOut = (why: string): LimitedText => ({
    type: 'refused',
    problem: `${oneLine(path)} was left out: ${why}.`,
  })
  if (bytes.length > maxBytes) return leaveOut(`it has more than ${maxBytes} bytes`)
  const text = decodeText(bytes, { isCut: false })
  return text === undefined ? leaveOut('it is not text in UTF-8') : { type: 'text', text, isCut: false, realPath }
}
