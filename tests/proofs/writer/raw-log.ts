import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fingerprintOf, givenPayload, sha256Of } from './fingerprint.ts'

export type RawLine = { seq: number; type: string; id: string; crc: string } & Record<string, unknown>

/** A log as its bytes say, read without any code of the package. */
export interface RawLog {
  lines: RawLine[]
  /** Complete lines that do not prove themselves, and numbers out of order. */
  faults: string[]
  /** Bytes after the last newline. */
  tailBytes: number
}

export function readRawLog(folder: string): RawLog {
  const bytes = readFileSync(join(folder, 'events.jsonl'))
  const log: RawLog = { lines: [], faults: [], tailBytes: 0 }
  let start = 0
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    takeLine(log, bytes.subarray(start, end), start)
    start = end + 1
  }
  log.tailBytes = bytes.length - start
  return log
}

/** The fingerprint of what a caller once gave, from the line and its blobs. Throws where a blob is missing or wrong. */
export function storedFingerprint(folder: string, line: RawLine): string {
  const blobOf = (sha256: string): Uint8Array | undefined => readRawBlob(folder, sha256)
  return fingerprintOf(givenPayload(line, blobOf), blobOf)
}

function readRawBlob(folder: string, sha256: string): Uint8Array | undefined {
  const path = join(folder, 'blobs', sha256)
  if (!existsSync(path)) return undefined
  const bytes = readFileSync(path)
  return sha256Of(bytes) === sha256 ? bytes : undefined
}

function takeLine(log: RawLog, bytes: Uint8Array, at: number): void {
  const line = proven(bytes)
  const expected = (log.lines.at(-1)?.seq ?? 0) + 1
  if (!line) log.faults.push(`the line at byte ${at} (${bytes.length} bytes) does not prove itself`)
  else if (line.seq !== expected) log.faults.push(`the line at byte ${at} has seq ${line.seq}, not ${expected}`)
  if (line) log.lines.push(line)
}

const sealLength = ',"crc":"00000000"}'.length

function proven(bytes: Uint8Array): RawLine | undefined {
  const seal = Buffer.from(bytes.subarray(-sealLength)).toString()
  const crc = crc32(bytes.subarray(0, -sealLength)).toString(16).padStart(8, '0')
  if (seal !== `,"crc":"${crc}"}`) return undefined
  return JSON.parse(Buffer.from(bytes).toString()) as RawLine
}
