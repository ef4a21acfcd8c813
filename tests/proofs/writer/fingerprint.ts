import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

export type BlobOf = (sha256: string) => Uint8Array | undefined

/**
 * A hash of a payload in its form on disk, for comparing what a caller gave with what lies in the log. An image counts by its
 * bytes, wherever they are; one whose blob is missing has no fingerprint.
 */
export function fingerprintOf(payload: unknown, blobOf: BlobOf = () => undefined): string {
  return sha256Of(JSON.stringify(canonical(payload, blobOf))).slice(0, 16)
}

/** The payload of a line as it was given: values that were moved to blobs are back in their places. */
export function givenPayload(line: Record<string, unknown>, blobOf: BlobOf): unknown {
  const type = String(line['type'])
  const payload = structuredClone(line[type] ?? null)
  for (const { path, sha256 } of (line['blobs'] ?? []) as { path: string; sha256: string }[]) {
    const bytes = blobOf(sha256)
    if (!bytes) throw new Error(`blob ${sha256} of line ${String(line['id'])} is missing`)
    replaceAt({ [type]: payload }, path, Buffer.from(bytes).toString())
  }
  return payload
}

export function sha256Of(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function canonical(value: unknown, blobOf: BlobOf): unknown {
  if (Array.isArray(value)) return value.map((each) => canonical(each, blobOf))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1))
  const keys = members.map(([key]) => key)
  if (isDeepStrictEqual(keys, ['data', 'media_type', 'type'])) return imageOf(value as Source, blobOf)
  if (isDeepStrictEqual(keys, ['media_type', 'sha256', 'size', 'type'])) return imageOf(value as Source, blobOf)
  return Object.fromEntries(members.map(([key, each]) => [key, canonical(each, blobOf)]))
}

interface Source {
  type: 'base64' | 'blob'
  media_type: string
  data?: string
  sha256?: string
}

function imageOf(source: Source, blobOf: BlobOf): unknown {
  if (source.type === 'base64') {
    return { media_type: source.media_type, sha256: sha256Of(Buffer.from(source.data ?? '', 'base64')) }
  }
  if (!blobOf(source.sha256 ?? '')) throw new Error(`the image blob ${source.sha256} is missing`)
  return { media_type: source.media_type, sha256: source.sha256 }
}

function replaceAt(holder: Record<string, unknown>, pointer: string, value: string): void {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const last = keys.pop() as string
  const place = keys.reduce((each, key) => each[key] as Record<string, unknown>, holder)
  place[last] = value
}
