import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readPlainFile } from '../words/plain-file.ts'

/**
 * The folders that the index of a repository lists as nested repositories: `git status` and similar commands enter them
 * and use the settings there. Undefined if the index cannot be read.
 */
export function linkedFolders(repository: string, hash: { bytes: 20 | 32 }): string[] | undefined {
  const file = join(repository, 'index')
  if (!existsSync(file)) return []
  // An index may be split into two files, where the second one overrides the first.
  if (readdirSync(repository).some((name) => name.startsWith('sharedindex.'))) return undefined
  const index = readPlainFile(file, { maxBytes: 1024 * 1024 * 1024 })
  if (!index) return undefined
  // Most repositories have neither, and then the names need not be read.
  return index.includes(linkMode) || index.includes(folderMode) ? linksIn(index, hash.bytes) : []
}

/** The mode of an entry. */
const linkMode = Buffer.from([0, 0, 0xe0, 0])
/** A folder of a sparse index stands for everything below it, which may contain a nested repository. */
const folderMode = Buffer.from([0, 0, 0x40, 0])

function linksIn(index: Buffer, hashBytes: number): string[] | undefined {
  const entries = entriesOf(index, hashBytes)
  if (!entries || entries.some(({ mode }) => mode.equals(folderMode))) return undefined
  const links = entries.filter(({ mode }) => mode.equals(linkMode)).map(({ name }) => name)
  // A name that is not UTF-8 would be changed by decoding.
  const areReadable = links.every((name) => Buffer.from(name.toString()).equals(name))
  return areReadable ? links.map((name) => name.toString()) : undefined
}

/** The paths of all files that a repository tracks, relative to its root. Undefined if the index cannot be read. */
export function trackedFiles(repository: string, hash: { bytes: 20 | 32 }): string[] | undefined {
  const file = join(repository, 'index')
  if (!existsSync(file)) return []
  if (readdirSync(repository).some((name) => name.startsWith('sharedindex.'))) return undefined
  const index = readPlainFile(file, { maxBytes: 1024 * 1024 * 1024 })
  return index && entriesOf(index, hash.bytes)?.map(({ name }) => name.toString())
}

interface IndexEntry {
  name: Buffer
  mode: Buffer
}

function entriesOf(index: Buffer, hashBytes: number): IndexEntry[] | undefined {
  if (index.length < 12 || index.toString('latin1', 0, 4) !== 'DIRC') return undefined
  const version = index.readUInt32BE(4)
  if (version < 2 || version > 4) return undefined
  const entries: IndexEntry[] = []
  let at = 12
  let name = Buffer.alloc(0)
  for (let left = index.readUInt32BE(8); left > 0; left -= 1) {
    const flagsAt = at + 40 + hashBytes
    if (flagsAt + 2 > index.length) return undefined
    const isExtended = (index.readUInt16BE(flagsAt) & 0x4000) !== 0
    const prefix = takeShortening(index, { at: flagsAt + (isExtended ? 4 : 2), isShortened: version === 4 })
    const end = index.indexOf(0, prefix.end)
    if (end === -1 || prefix.dropped > name.length) return undefined
    const kept = version === 4 ? name.subarray(0, name.length - prefix.dropped) : Buffer.alloc(0)
    name = Buffer.concat([kept, index.subarray(prefix.end, end)])
    entries.push({ name, mode: index.subarray(at + 24, at + 28) })
    // Up to version 3, each entry is padded with zeros, at least one, to a multiple of eight.
    at = version === 4 ? end + 1 : at + Math.ceil((end + 1 - at) / 8) * 8
  }
  return entries
}

/** In version 4 each name says how many characters of the previous one to remove. */
function takeShortening(
  index: Buffer,
  { at, isShortened }: { at: number; isShortened: boolean },
): { dropped: number; end: number } {
  if (!isShortened) return { dropped: 0, end: at }
  let dropped = 0
  for (let end = at; ; end += 1) {
    const byte = index[end] ?? 0
    dropped = dropped * 128 + (byte & 127)
    if ((byte & 128) === 0) return { dropped, end: end + 1 }
    dropped += 1
  }
}
