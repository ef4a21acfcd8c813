import { isObject } from '../util/json.ts'
import type { MovedValue } from './entry.ts'
import { maxWrittenLineBytes, type DiskLine } from './line.ts'
import type { BlobReference } from './message.ts'
import { excessOf } from './parse-line.ts'

export interface BlobWriter {
  putBlob(bytes: Uint8Array): Promise<BlobReference>
}

export interface BlobReader {
  getBlob(sha256: string): Promise<Uint8Array | undefined>
}

/** Cheap first check of a line's JSON: a UTF-16 code unit takes at most three bytes of UTF-8. */
export function mayBeTooLarge(body: string): boolean {
  return body.length * 3 > maxBodyBytes && encoder.encode(body).length > maxBodyBytes
}

/**
 * Moves the largest strings of a line to blobs until the line fits. If its strings are not enough, the list or object with most of its
 * values is moved. `restoreLargeValues` reverses it without loss.
 */
export async function moveLargeValues(line: DiskLine, blobs: BlobWriter): Promise<DiskLine> {
  const result = structuredClone(line)
  const moved: MovedValue[] = []
  const excess = (): number => bytesOf(result) + bytesOf(moved) - maxBodyBytes
  const moveWidest = async (): Promise<boolean> => {
    const place = widestOf(result)
    return place !== undefined && (await moveWide(place, moved, blobs))
  }
  while (excess() > savingOf(stringsOf(result)) && (await moveWidest()));
  let rest = excess()
  for (const place of stringsOf(result).sort((left, right) => right.bytes - left.bytes)) {
    if (rest <= 0 || place.bytes < minMovedBytes) break
    rest -= place.bytes - (await moveValue(place, moved, blobs))
  }
  // What stays of the strings may be too much.
  while (excess() > 0 && (await moveWidest()));
  if (moved.length > 0) result['blobs'] = moved
  return result
}

/** About so many bytes less, if all of these strings are moved. */
function savingOf(places: readonly Place[]): number {
  const savings = places.map(({ bytes }) => (bytes < minMovedBytes ? 0 : bytes - movedStringBytes))
  return savings.reduce((sum, saving) => sum + Math.max(0, saving), 0)
}

export function hasMovedValues(line: DiskLine): boolean {
  return Array.isArray(line['blobs'])
}

/** Puts the moved values back. Images stay references and are read when they are sent. */
export async function restoreLargeValues(line: DiskLine, blobs: BlobReader): Promise<DiskLine> {
  const moved = line['blobs']
  if (!Array.isArray(moved)) return line
  const result = structuredClone(line)
  delete result['blobs']
  // What was moved last may have had something in it that was moved before.
  for (const value of moved.filter(isMovedValue).reverse()) {
    const bytes = await blobs.getBlob(value.sha256)
    const place = bytes && placeAt(result, value.path)
    const whole = bytes && decoded(bytes, value)
    // If the blob is missing, the value keeps what stayed of it and `verify` reports the blob.
    if (place && kindOf(whole) === kindOf(place.holder[place.key])) place.holder[place.key] = whole
  }
  return result
}

/** Undefined if the blob does not hold what the line says; only a foreign writer can have stored one like that. */
function decoded(bytes: Uint8Array, { encoding }: MovedValue): unknown {
  if (encoding !== 'json') return decoder.decode(bytes)
  try {
    return excessOf(bytes, maxMovedValues) === undefined ? JSON.parse(decoder.decode(bytes)) : undefined
  } catch {
    return undefined // not JSON: keep what stayed
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'list' : typeof value
}

/** Hashes of the blobs that a line refers to. */
export function blobsOf(line: DiskLine): string[] {
  const { message, attempt, workspace_files: files, blobs } = line as Holder
  return [...referencesIn([message, attempt, files, blobs]).keys()]
}

/** Every reference to a blob in a value: the hash, and the size. */
function referencesIn(value: unknown, found = new Map<string, number>()): Map<string, number> {
  if (Array.isArray(value)) for (const each of value) referencesIn(each, found)
  else if (isObject(value)) {
    const { sha256, size } = value
    if (isSha256(sha256) && typeof size === 'number') found.set(sha256, size)
    for (const each of Object.values(value)) referencesIn(each, found)
  }
  return found
}

export function isSha256(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

function isMovedValue(value: unknown): value is MovedValue {
  return isObject(value) && typeof value['path'] === 'string' && isSha256(value['sha256'])
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
/** Room for seq, checksum and the list of moved values. */
const maxBodyBytes = maxWrittenLineBytes - 4096
const minMovedBytes = 1024
const previewLength = 200
/** What stays of most strings that were moved: the beginning, and the place in the list. */
const movedStringBytes = 700
/** A reader refuses to parse more than so many values in one blob. */
const maxMovedValues = 4 * 1024 * 1024

type Holder = Record<string, unknown>

interface Place {
  holder: Holder
  key: string
  path: string
  bytes: number
}

async function moveValue(place: Place, moved: MovedValue[], blobs: BlobWriter): Promise<number> {
  const value = String(place.holder[place.key])
  if (isImageSource(place.holder)) {
    const reference = await blobs.putBlob(decodeBase64(value))
    delete place.holder['data']
    Object.assign(place.holder, { type: 'blob', ...reference })
    return bytesOf(reference)
  }
  // UTF-8 cannot encode a lone surrogate; JSON can.
  const encoding = value.isWellFormed() ? {} : { encoding: 'json' as const }
  const reference = await blobs.putBlob(encoder.encode(value.isWellFormed() ? value : JSON.stringify(value)))
  const preview = value.slice(0, previewLength).toWellFormed()
  place.holder[place.key] = preview
  const entry = { path: place.path, ...reference, ...encoding }
  moved.push(entry)
  return bytesOf(preview) + bytesOf(entry)
}

/** Moves a list or an object as JSON. An empty one stays in its place. False if readers would refuse it. */
async function moveWide({ holder, key, path }: Place, moved: MovedValue[], blobs: BlobWriter): Promise<boolean> {
  const value = holder[key]
  const bytes = encoder.encode(JSON.stringify(value))
  if (excessOf(bytes, maxMovedValues) !== undefined) return false
  const holds = [...referencesIn(value)].map(([sha256, size]) => ({ sha256, size }))
  const reference = await blobs.putBlob(bytes)
  holder[key] = Array.isArray(value) ? [] : {}
  moved.push({ path, ...reference, encoding: 'json', ...(holds.length > 0 && { holds }) })
  return true
}

/** Goes on into the largest list or object while it is most of what it is in. The payload itself stays. */
function widestOf(line: DiskLine): Place | undefined {
  const payload = largestIn(line, '')
  let widest = payload && largestIn(payload.holder[payload.key] as Holder, payload.path)
  for (let inner = widest; widest && inner && inner.bytes * 2 > widest.bytes;) {
    widest = inner
    inner = largestIn(inner.holder[inner.key] as Holder, inner.path)
  }
  return widest && widest.bytes >= minMovedBytes ? widest : undefined
}

function largestIn(holder: Holder, path: string): Place | undefined {
  let largest: Place | undefined
  for (const key in holder) {
    const value = holder[key]
    const bytes = typeof value === 'object' && value !== null ? bytesOf(value) : 0
    if (bytes > (largest?.bytes ?? 2)) largest = { holder, key, path: `${path}/${escaped(key)}`, bytes }
  }
  return largest
}

function isImageSource({ type, data }: Holder): boolean {
  return type === 'base64' && typeof data === 'string' && data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data)
}

function decodeBase64(value: string): Uint8Array {
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0))
}

/** Every string in the line's payload. Members that identify the line are excluded. */
function stringsOf(line: DiskLine): Place[] {
  const places: Place[] = []
  const visit = (holder: Holder, path: string): void => {
    for (const key in holder) {
      const value = holder[key]
      if (typeof value === 'string' && value.length > minMovedBytes / 3) {
        places.push({ holder, key, path: `${path}/${escaped(key)}`, bytes: bytesOf(value) })
      } else if (typeof value === 'object' && value !== null) visit(value as Holder, `${path}/${escaped(key)}`)
    }
  }
  visit(line, '')
  return places
}

/** For a JSON pointer. */
function escaped(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

function bytesOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length
}

function placeAt(line: DiskLine, path: string): { holder: Holder; key: string } | undefined {
  const keys = path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = keys.pop()
  let holder: unknown = line
  for (const key of keys) {
    if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key)) return undefined
    holder = (holder as Holder)[key]
  }
  if (last === undefined || typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, last))
    return undefined
  return { holder: holder as Holder, key: last }
}
