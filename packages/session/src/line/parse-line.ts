import { crc32 } from '#crc32'
import { checksum } from './seal-line.ts'
import { isId } from './ids.ts'
import { isObject } from '../util/json.ts'
import { maxNesting, maxReadLineBytes, type DiskLine } from './line.ts'

export type ParsedLine =
  | { type: 'line'; line: DiskLine; sealed: boolean; crc: string }
  | { type: 'damaged'; reason: string; head: SalvagedHead }

/**
 * What can still be read at the start of a damaged line. `parentId` is undefined if the line is, or may be, a
 * record.
 */
export interface SalvagedHead {
  seq?: number
  type?: string
  id?: string
  parentId?: string | null
}

/** Parses one line, without its newline. Never throws: an unreadable line is returned as damage with a reason. */
export function parseLine(bytes: Uint8Array): ParsedLine {
  const end = bytes[bytes.length - 1] === carriageReturn ? bytes.length - 1 : bytes.length
  const line = end === bytes.length ? bytes : bytes.subarray(0, end)
  const sealed = hasSeal(line)
  if (sealed && crc32(line.subarray(0, end - sealLength)) !== sealOf(line)) {
    return damaged(line, 'checksum does not match')
  }
  if (end > maxReadLineBytes) return damaged(line, `longer than ${maxReadLineBytes} bytes`)
  const doubt = sealed ? undefined : doubtAbout(line)
  if (doubt) return damaged(line, doubt)
  const excess = end > structureScanBytes ? excessOf(line) : undefined
  if (excess) return damaged(line, excess)
  let json: string
  let parsed: unknown
  try {
    json = decoder.decode(line)
    parsed = JSON.parse(json)
  } catch (error) {
    return damaged(line, error instanceof SyntaxError ? 'not valid JSON' : 'not valid UTF-8')
  }
  const fault = faultOf(parsed, json, sealed)
  if (fault) return damaged(line, fault)
  const disk = parsed as DiskLine
  return { type: 'line', line: disk, sealed, crc: sealed ? (disk.crc as string) : checksum(line) }
}

/**
 * Splits lines whose newline was lost or replaced by one stray byte. Yields nothing if the bytes are not such
 * lines.
 */
export function* splitMerged(bytes: Uint8Array): Iterable<{ at: number; bytes: Uint8Array }> {
  let start = 0
  for (let next = findBytes(bytes, lineStart, 1); next !== -1; next = findBytes(bytes, lineStart, next + 1)) {
    const isListed = bytes[next - 1] === comma // an object inside a JSON array, not a line
    const end = endsLine(bytes, next) ? next : endsLine(bytes, next - 1) && !isListed ? next - 1 : -1
    if (end - start < shortestSealedLine) continue
    yield { at: start, bytes: bytes.subarray(start, end) }
    start = next
  }
  if (start > 0 || endsLine(bytes, bytes.length - 1)) {
    // The last part may also have a stray byte in place of its newline.
    const end = endsLine(bytes, bytes.length) ? bytes.length : bytes.length - 1
    yield { at: start, bytes: bytes.subarray(start, end) }
  }
}

export function salvageHead(bytes: Uint8Array): SalvagedHead {
  const head: SalvagedHead = {}
  if (bytes[0] !== 0x7b) return head
  const start = headDecoder.decode(bytes.subarray(0, 400))
  const seq = /^\{"seq":(\d{1,15}),/.exec(start)
  if (seq) head.seq = Number(seq[1])
  const type = /^\{(?:"seq":\d{1,15},)?"type":"([a-z_]{1,64})","id":"([A-Za-z0-9_-]{1,64})"/.exec(start)
  if (type?.[1] !== undefined && type[2] !== undefined) {
    head.type = type[1]
    head.id = type[2]
    const parent = /^,"parent_id":(?:"([A-Za-z0-9_-]{1,64})"|null)[,}]/.exec(start.slice(type[0].length))
    if (parent) head.parentId = parent[1] ?? null
  }
  return head
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** latin1 maps each byte to one character, so a damaged byte does not affect its neighbors. */
const headDecoder = new TextDecoder('latin1')
const encoder = new TextEncoder()
const carriageReturn = 0x0d
const comma = 0x2c
const sealStart = encoder.encode(',"crc":"')
const sealLength = sealStart.length + 10
const lineStart = encoder.encode('{"seq":')
export const shortestSealedLine = '{"seq":1,"type":"","id":"a","crc":"00000000"}'.length
/** Shorter lines cannot nest deeply enough to be harmful; their depth is checked after parsing, which is cheaper. */
const structureScanBytes = 4096
/** More values than any line of our writer holds; in memory they take a hundred times their size in the file. */
const maxLineValues = 256 * 1024
/** A file may hold millions of shorter lines, so they are not parsed. */
export const shortestPlainLine = '{"type":"","id":"a"}'.length

export function hasSeal(line: Uint8Array): boolean {
  const from = line.length - sealLength
  if (from < 1 || line[line.length - 1] !== 0x7d || line[line.length - 2] !== 0x22) return false
  for (let index = 0; index < sealStart.length; index++) if (line[from + index] !== sealStart[index]) return false
  return true
}

/** The checksum stored in the line; -1 if it is not eight lower-case hex digits. */
function sealOf(line: Uint8Array): number {
  let value = 0
  for (let index = line.length - 10; index < line.length - 2; index++) {
    const digit = hexDigits[line[index] as number] as number
    if (digit === notADigit) return -1
    value = value * 16 + digit
  }
  return value
}

const notADigit = 0xff
const hexDigits = new Uint8Array(256).fill(notADigit)
for (const [value, digit] of [...'0123456789abcdef'].entries()) hexDigits[digit.charCodeAt(0)] = value

function damaged(line: Uint8Array, reason: string): ParsedLine {
  return { type: 'damaged', reason, head: salvageHead(line) }
}

function faultOf(line: unknown, json: string, sealed: boolean): string | undefined {
  if (!isObject(line)) return 'not an object'
  if (typeof line['type'] !== 'string') return 'no type'
  if (!isId(line['id'])) return 'no valid id'
  const parent = line['parent_id']
  if (parent !== undefined && parent !== null && !isId(parent)) return 'no valid parent_id'
  const seq = line['seq']
  if (seq !== undefined && !(Number.isSafeInteger(seq) && (seq as number) > 0)) return 'no valid seq'
  // Only plain files have lines without a checksum, and those lines have no seq.
  if (seq !== undefined && !sealed) return 'checksum is missing'
  if (sealed && seq === undefined) return 'seq is missing'
  if (isTooDeep(line, json)) return `nested deeper than ${maxNesting}`
  return undefined
}

/** Whether a value is nested too deeply. The length of its JSON usually rules that out. */
export function isTooDeep(value: object, json: string): boolean {
  return countOf('{', json) + countOf('[', json) > maxNesting && deeperThan(value, maxNesting)
}

function countOf(bracket: string, json: string): number {
  let count = 0
  for (let at = json.indexOf(bracket); at !== -1 && count <= maxNesting; at = json.indexOf(bracket, at + 1)) count++
  return count
}

function deeperThan(value: object, levels: number): boolean {
  if (levels === 0) return true
  for (const inner of Object.values(value)) {
    if (typeof inner === 'object' && inner !== null && deeperThan(inner as object, levels - 1)) return true
  }
  return false
}

/** Rejects lines without a checksum before parsing, because a file may hold millions of them. */
function doubtAbout(line: Uint8Array): string | undefined {
  if (line.length < shortestPlainLine || line[0] === 0) return 'not valid JSON'
  return startsWith(line, lineStart) ? 'checksum is missing' : undefined
}

/** Checks the limits on raw bytes: parsing ten million open brackets takes seconds and gigabytes. */
export function excessOf(line: Uint8Array, maxValues = maxLineValues): string | undefined {
  let depth = 0
  let values = 0
  for (let index = 0; index < line.length; index++) {
    const byte = line[index]
    if (byte === 0x22) index = endOfString(line, index)
    else if (byte === 0x2c) values++
    else if (byte === 0x5d || byte === 0x7d) depth--
    else if (byte === 0x5b || byte === 0x7b) {
      values++
      if (++depth > maxNesting) return `nested deeper than ${maxNesting}`
    }
    if (values > maxValues) return `more than ${maxValues} values`
  }
  return undefined
}

function endOfString(line: Uint8Array, quote: number): number {
  for (let end = line.indexOf(0x22, quote + 1); end !== -1; end = line.indexOf(0x22, end + 1)) {
    let backslashes = 0
    while (line[end - 1 - backslashes] === 0x5c) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return line.length
}

export function findBytes(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  const first = wanted[0] ?? 0
  for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at
  }
  return -1
}

function startsWith(bytes: Uint8Array, wanted: Uint8Array): boolean {
  for (let index = 0; index < wanted.length; index++) if (bytes[index] !== wanted[index]) return false
  return true
}

function endsLine(bytes: Uint8Array, end: number): boolean {
  return end >= 2 && bytes[end - 2] === 0x22 && bytes[end - 1] === 0x7d
}
