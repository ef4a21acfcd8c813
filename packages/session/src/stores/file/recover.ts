import { dirname } from 'node:path'
import { parseLine, splitMerged } from '../../line/parse-line.ts'
import type { FilePort, ReadPort } from './file-port.ts'

export interface Mended {
  tornBytes: number
  /** Where the bytes were copied to. */
  keptAs: string | undefined
  /** Offset of the next line. */
  end: number
}

/**
 * Makes a log end with a complete line. With the lock held, bytes after the last newline were never
 * acknowledged: they are copied aside and truncated. If they form a line with a valid checksum, only its
 * newline was lost and is restored. Without a lock they may be a line being written, so nothing is truncated; a
 * newline separates the next line.
 */
export async function mendTail(port: FilePort, path: string, fd: number, { isLocked = true } = {}): Promise<Mended> {
  const size = port.size(fd)
  const end = await endOfLastLine(port, fd, size)
  if (end === size) return { tornBytes: 0, keptAs: undefined, end }
  if (!isLocked) {
    if (port.write(fd, newline) === 0) throw new Error('could not write a newline')
    return { tornBytes: size - end, keptAs: undefined, end: size + 1 }
  }
  const whole = await wholeLineAt(port, fd, { from: end, to: size })
  let keptAs: string | undefined
  if (end + whole < size) {
    keptAs = await setAside(port, path, fd, { from: end, to: size })
    // Copying was asynchronous, and a writer whose lock file was deleted may have continued. Nothing happens
    // between this check and the truncation.
    if (port.size(fd) !== size) return mendTail(port, path, fd)
    port.truncate(fd, end + whole)
  }
  if (whole > 0 && port.write(fd, newline) === 0) throw new Error('could not write the last newline')
  return { tornBytes: size - end - whole, keptAs, end: whole > 0 ? end + whole + 1 : end }
}

/** The offset after the last newline; bytes after it are unfinished. */
export async function endOfLastLine(port: ReadPort, fd: number, size: number): Promise<number> {
  for (let to = size; to > 0; to -= chunkBytes) {
    const from = Math.max(0, to - chunkBytes)
    const chunk = await readRange(port, fd, { from, to })
    const at = chunk.lastIndexOf(0x0a)
    if (at !== -1) return from + at + 1
  }
  return 0
}

export async function readRange(port: ReadPort, fd: number, { from, to }: Range): Promise<Uint8Array> {
  const bytes = new Uint8Array(to - from)
  let filled = 0
  while (filled < bytes.length) {
    const count = await port.read(fd, bytes.subarray(filled), from + filled)
    if (count === 0) break
    filled += count
  }
  return bytes.subarray(0, filled)
}

interface Range {
  from: number
  to: number
}

const chunkBytes = 64 * 1024
const newline = Uint8Array.of(0x0a)
/** The writer never makes longer lines. */
const maxMendedBytes = 256 * 1024

/** Length of the sealed line in the unfinished bytes, allowing one stray byte after it; 0 if there is none. */
async function wholeLineAt(port: ReadPort, fd: number, range: Range): Promise<number> {
  if (range.to - range.from > maxMendedBytes) return 0
  const bytes = await readRange(port, fd, range)
  const candidate = [...splitMerged(bytes)][0]?.bytes ?? bytes
  const parsed = parseLine(candidate)
  return parsed.type === 'line' && parsed.sealed && bytes.length - candidate.length <= 1 ? candidate.length : 0
}

async function setAside(port: FilePort, path: string, fd: number, range: Range): Promise<string> {
  let number = 1
  while (port.exists(`${path}.torn-${number}`)) number++
  const keptAs = `${path}.torn-${number}`
  const copy = port.create(keptAs)
  try {
    for (let from = range.from; from < range.to; from += chunkBytes) {
      const bytes = await readRange(port, fd, { from, to: Math.min(from + chunkBytes, range.to) })
      if (port.write(copy, bytes) < bytes.length) throw new Error(`could not write all of ${keptAs}`)
    }
    await port.dataSync(copy)
    // Sync before truncating, so that the bytes survive a power cut in one place or the other.
    await port.syncFolder(dirname(path))
  } catch (error) {
    port.remove(keptAs)
    throw error
  } finally {
    port.close(copy)
  }
  return keptAs
}
