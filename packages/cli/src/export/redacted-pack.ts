import type { BlobReference } from '@tapetree/session'
import { sealLine, type DiskLine, type MovedValue } from '@tapetree/session/format'
import { hash } from 'node:crypto'
import type { RedactionTally } from './redaction-tally.ts'

/** A pack with its secrets redacted. Lines and blobs without secrets stay identical, byte for byte. */
export async function* redactedPack(
  pack: AsyncIterable<Uint8Array>,
  tally: RedactionTally,
): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(pack)
  /** Redacted blobs by their old name. */
  const blobs = new Map<string, RedactedBlob>()
  let isLog = false
  for (let line = await reader.line(); line; line = await reader.line()) {
    const part: PackPart | undefined = isLog ? undefined : (JSON.parse(line.toString()) as PackPart)
    if (part?.type === 'blob') {
      const blob = redactBlob(await reader.bytes(part.size), tally)
      if (blob.sha256 !== part.sha256) blobs.set(part.sha256, blob)
      yield packLine({ type: 'blob', sha256: blob.sha256, size: blob.size })
      yield blob.bytes
      continue
    }
    yield isLog ? withNewline(redactLine(line, blobs, tally)) : withNewline(line)
    isLog ||= part?.type === 'log'
  }
}

/** A line before the log; only a blob has hash and size. */
interface PackPart extends BlobReference {
  type: string
}

interface RedactedBlob extends BlobReference {
  bytes: Uint8Array
}

function redactBlob(bytes: Uint8Array, tally: RedactionTally): RedactedBlob {
  const redacted = tally.bytes(bytes)
  return { bytes: redacted, sha256: hash('sha256', redacted), size: redacted.length }
}

function redactLine(bytes: Buffer, blobs: ReadonlyMap<string, RedactedBlob>, tally: RedactionTally): Uint8Array {
  const line = parsed(bytes)
  if (!line) return tally.bytes(bytes)
  const { seq, crc, ...body } = line
  const redacted = withBlobs(tally.json(body), blobs)
  if (redacted === body) return bytes
  if (seq === undefined || crc === undefined) return Buffer.from(JSON.stringify({ ...line, ...redacted }))
  return Buffer.from(sealLine(redacted, seq).text)
}

/** Undefined for a damaged line: with a new checksum it would look intact. */
function parsed(bytes: Buffer): DiskLine | undefined {
  try {
    const line = JSON.parse(bytes.toString()) as DiskLine | null
    if (typeof line !== 'object' || line === null || Array.isArray(line)) return undefined
    const { seq, crc, ...body } = line
    if (crc !== undefined && (seq === undefined || sealLine(body, seq).crc !== crc)) return undefined
    return line
  } catch {
    return undefined // not JSON
  }
}

/** Updates blob names and the previews of their content. */
function withBlobs(line: DiskLine, blobs: ReadonlyMap<string, RedactedBlob>): DiskLine {
  if (blobs.size === 0) return line
  const renamed = renameBlobs(line, blobs) as DiskLine
  if (renamed === line) return line
  const moved = Array.isArray(renamed['blobs']) ? (renamed['blobs'] as MovedValue[]) : []
  const bytesOf = new Map([...blobs.values()].map((blob) => [blob.sha256, blob.bytes]))
  return moved.reduce((before, { path, sha256, encoding }) => {
    const bytes = bytesOf.get(sha256)
    if (!bytes || typeof path !== 'string' || encoding !== undefined) return before
    return withString(before, pointerOf(path), (shown) =>
      new TextDecoder().decode(bytes).slice(0, shown.length).toWellFormed(),
    )
  }, renamed)
}

function renameBlobs(value: unknown, blobs: ReadonlyMap<string, RedactedBlob>): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => renameBlobs(item, blobs))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) => [key, renameBlobs(inner, blobs)] as const)
  const { sha256, size } = value as { sha256?: unknown; size?: unknown }
  const blob = typeof sha256 === 'string' && typeof size === 'number' ? blobs.get(sha256) : undefined
  const isSame = entries.every(([key, inner]) => inner === (value as Record<string, unknown>)[key])
  if (isSame && !blob) return value
  return { ...Object.fromEntries(entries), ...(blob && { sha256: blob.sha256, size: blob.size }) }
}

/** Returns the value with the string at a path replaced, or unchanged if there is none. */
function withString<T>(value: T, [key, ...rest]: readonly string[], change: (text: string) => string): T {
  if (key === undefined) return typeof value === 'string' ? (change(value) as T) : value
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return value
  const inner = withString((value as Record<string, unknown>)[key], rest, change)
  return (Array.isArray(value) ? value.with(Number(key), inner) : { ...value, [key]: inner }) as T
}

function pointerOf(path: string): string[] {
  return path
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function packLine(line: Record<string, unknown>): Uint8Array {
  return Buffer.from(`${JSON.stringify(line)}\n`)
}

function withNewline(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([bytes, Buffer.of(0x0a)])
}

const newline = 0x0a

/** Reads lines and byte ranges from a stream. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next line without its newline; undefined at the end. */
  async line(): Promise<Buffer | undefined> {
    for (let looked = 0; ;) {
      const at = this.#rest.indexOf(newline, looked)
      if (at !== -1) return this.#take(at, 1)
      looked = this.#rest.length
      if (!(await this.#more())) return undefined
    }
  }

  /** This many bytes, or fewer at the end of the stream. */
  async bytes(count: number): Promise<Buffer> {
    while (this.#rest.length < count && (await this.#more())) continue
    return this.#take(Math.min(count, this.#rest.length), 0)
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#chunks.next()
    if (done) return false
    this.#rest = this.#rest.length === 0 ? Buffer.from(value) : Buffer.concat([this.#rest, value])
    return true
  }

  #take(count: number, skipped: number): Buffer {
    const taken = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(count + skipped)
    return taken
  }
}
