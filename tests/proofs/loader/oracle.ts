import { crc32 } from 'node:zlib'
import type { Position } from '@tapetree/session/format'

/** A line that stands whole in a file and proves itself, or would be believed in a plain one. */
export interface WholeLine extends Position {
  seq: number | undefined
  isWriter: boolean
}

/** The whole lines of a file, found in the plainest way: an opinion about what is intact that owes nothing to the loader. */
export function wholeLines(bytes: Uint8Array): WholeLine[] {
  const lines: WholeLine[] = []
  let at = 0
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, at)) {
    const line = readLine(bytes.subarray(at, end))
    if (line) lines.push({ at, size: end - at, seq: line.seq, isWriter: line.type === 'writer' })
    at = end + 1
  }
  return lines
}

interface DiskLike {
  seq: number | undefined
  type: string
}

function readLine(bytes: Uint8Array): DiskLike | undefined {
  const text = Buffer.from(bytes).toString('latin1')
  const seal = /,"crc":"(.{8})"\}\r?$/s.exec(text)
  if (seal && crc32(bytes.subarray(0, seal.index)).toString(16).padStart(8, '0') !== seal[1]) return undefined
  let line: unknown
  try {
    line = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined // not JSON, or not text
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line) || depthOf(line) > 64) return undefined
  const { seq, type, id, parent_id: parent = null } = line as Record<string, unknown>
  if (typeof type !== 'string' || !isId(id) || !(parent === null || isId(parent))) return undefined
  if (seal === null) return seq === undefined ? { seq, type } : undefined
  return Number.isSafeInteger(seq) && (seq as number) > 0 ? { seq: seq as number, type } : undefined
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value)
}

function depthOf(value: object): number {
  let deepest = 0
  const waiting: [object, number][] = [[value, 1]]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [holder, depth] = next
    deepest = Math.max(deepest, depth)
    for (const inner of Object.values(holder) as unknown[]) {
      if (typeof inner === 'object' && inner !== null) waiting.push([inner, depth + 1])
    }
  }
  return deepest
}
