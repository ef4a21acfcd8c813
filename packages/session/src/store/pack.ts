import { blobsOf } from '../line/large-values.ts'
import type { ReadableLog } from '../log/log-store.ts'
import { parseLine } from '../line/parse-line.ts'

/**
 * A pack is one stream: a JSON line that identifies it; for each blob a line with its size and hash, followed
 * by its bytes; the log lines byte for byte; a closing line. It has no file names.
 */
interface PackStart {
  type: 'tapetree_pack'
  version: number
  session: string
}

interface PackBlob {
  type: 'blob'
  sha256: string
  size: number
}

interface PackLog {
  type: 'log'
}

interface PackEnd {
  type: 'end'
  lines: number
}

export const packVersion = 1

export async function* packSession(sessionId: string, log: ReadableLog): AsyncIterable<Uint8Array> {
  yield packLine({ type: 'tapetree_pack', version: packVersion, session: sessionId })
  const { blobs, lines } = await contentsOf(log)
  for (const sha256 of blobs) {
    const bytes = await log.getBlob(sha256)
    if (!bytes) continue
    yield packLine({ type: 'blob', sha256, size: bytes.length })
    yield bytes
  }
  yield packLine({ type: 'log' })
  let packed = 0
  for await (const batch of log.lines(0)) {
    // The blobs of lines that were appended since are not in the pack.
    const counted = batch.slice(0, lines - packed)
    for (const { bytes } of counted) yield withNewline(bytes)
    packed += counted.length
    if (packed === lines) break
  }
  yield packLine({ type: 'end', lines: packed })
}

async function contentsOf(log: ReadableLog): Promise<{ blobs: Set<string>; lines: number }> {
  const blobs = new Set<string>()
  let lines = 0
  for await (const batch of log.lines(0)) {
    lines += batch.length
    for (const { bytes } of batch) {
      const parsed = parseLine(bytes)
      if (parsed.type === 'line') for (const sha256 of blobsOf(parsed.line)) blobs.add(sha256)
    }
  }
  return { blobs, lines }
}

const encoder = new TextEncoder()

function packLine(line: PackStart | PackBlob | PackLog | PackEnd): Uint8Array {
  return encoder.encode(`${JSON.stringify(line)}\n`)
}

function withNewline(bytes: Uint8Array): Uint8Array {
  const line = new Uint8Array(bytes.length + 1)
  line.set(bytes)
  line[bytes.length] = 0x0a
  return line
}
