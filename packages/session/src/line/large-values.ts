import { isObject } from '../util/json.ts'
import type { MovedValue } from './entry.ts'
import { maxWrittenLineBytes, type DiskLine } from './line.ts'
import type { BlobReference } from './message.ts'

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

/** Moves the largest strings of a line to blobs until the line fits. `restoreLargeValues` reverses it without loss. */
export async function moveLargeValues(line: DiskLine, blobs: BlobWriter): Promise<DiskLine> {
  const result = structuredClone(line)
  const moved: MovedValue[] = []
  let excess = encoder.encode(JSON.stringify(result)).length - maxBodyBytes
  for (const place of stringsOf(result).sort((left, right) => right.bytes - left.bytes)) {
    if (excess <= 0 || place.bytes < minMovedBytes) break
    excess -= place.bytes - (await moveValue(place, moved, blobs))
  }
  if (moved.length > 0) result['blobs'] = moved
  return result
}

export function hasMovedValues(line: DiskLine): boolean {
  return Array.isArray(line['blobs'])
}

/** Puts the moved strings back. Images stay references and are read when they are sent. */
export async function restoreLargeValues(line: DiskLine, blobs: BlobReader): Promise<DiskLine> {
  const moved = line['blobs']
  if (!Array.isArray(moved)) return line
  const result = structuredClone(line)
  delete result['blobs']
  for (const value of moved.filter(isMovedValue)) {
    const bytes = await blobs.getBlob(value.sha256)
    const place = bytes && stringAt(result, value.path)
    const whole = bytes && decoded(bytes, value)
    // If the blob is missing, the value keeps its first characters and `verify` reports the blob.
    if (place && whole !== undefined) place.holder[place.key] = whole
  }
  return result
}

/** Returns undefined if the blob does not hold a string; only a foreign writer can have stored one like that. */
function decoded(bytes: Uint8Array, { encoding }: MovedValue): string | undefined {
  const words = decoder.decode(bytes)
  if (encoding !== 'json') return words
  try {
    const value: unknown = JSON.parse(words)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined // not JSON: keep the shortened value
  }
}

/** Hashes of the blobs that a line refers to. */
export function blobsOf(line: DiskLine): string[] {
  const names = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit)
    else if (isObject(value)) {
      if (isSha256(value['sha256']) && typeof value['size'] === 'number') names.add(value['sha256'])
      Object.values(value).forEach(visit)
    }
  }
  visit(line['message'])
  visit(line['attempt'])
  visit(line['workspace_files'])
  visit(line['blobs'])
  return [...names]
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

type Holder = Record<string, unknown>

interface StringPlace {
  holder: Holder
  key: string
  path: string
  bytes: number
}

async function moveValue(place: StringPlace, moved: MovedValue[], blobs: BlobWriter): Promise<number> {
  const value = String(place.holder[place.key])
  if (isImageSource(place.holder)) {
    const reference = await blobs.putBlob(decodeBase64(value))
    delete place.holder['data']
    Object.assign(place.holder, { type: 'blob', ...reference })
    return 0
  }
  // UTF-8 cannot encode a lone surrogate; JSON can.
  const encoding = value.isWellFormed() ? {} : { encoding: 'json' as const }
  const reference = await blobs.putBlob(encoder.encode(value.isWellFormed() ? value : JSON.stringify(value)))
  const preview = value.slice(0, previewLength).toWellFormed()
  place.holder[place.key] = preview
  moved.push({ path: place.path, ...reference, ...encoding })
  return preview.length + 150
}

function isImageSource({ type, data }: Holder): boolean {
  return type === 'base64' && typeof data === 'string' && data.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(data)
}

function decodeBase64(value: string): Uint8Array {
  return Uint8Array.from(atob(value), (character) => character.charCodeAt(0))
}

/** Every string in the line's payload. Members that identify the line are excluded. */
function stringsOf(line: DiskLine): StringPlace[] {
  const places: StringPlace[] = []
  const visit = (holder: Holder, path: string): void => {
    for (const [key, value] of Object.entries(holder)) {
      const here = `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
      if (typeof value === 'string') {
        if (value.length > minMovedBytes / 3)
          places.push({ holder, key, path: here, bytes: encoder.encode(JSON.stringify(value)).length })
      } else if (typeof value === 'object' && value !== null) visit(value as Holder, here)
    }
  }
  visit(line, '')
  return places
}

function stringAt(line: DiskLine, path: string): { holder: Holder; key: string } | undefined {
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
