import type { Redactor } from '@tapetree/agent/settings'
import { counted } from '../text/amounts.ts'

/** Matches markers in JSON; inside a text their quotes would be escaped. */
const imageMark = '"type":"image"'
const marker = /\[redacted: ([\w-]+)\]/g

/** A redactor that counts what it removes, by kind. */
export class RedactionTally {
  /** The redactor alone, for callers that count elsewhere. */
  readonly redactor: Redactor
  /** Removed during the export. */
  readonly found = new Map<string, number>()
  /** Removed earlier, when the session was recorded. */
  readonly recorded = new Map<string, number>()
  /** Images are not searched for secrets. */
  images = 0

  constructor(redactor: Redactor) {
    this.redactor = redactor
  }

  json<T>(value: T): T {
    const redacted = this.redactor.json(value)
    this.#count(JSON.stringify(value), redacted === value ? undefined : JSON.stringify(redacted))
    return redacted
  }

  /** A value that is not JSON, such as a blob or an unreadable line. */
  bytes(bytes: Uint8Array): Uint8Array {
    const redacted = this.redactor.bytes(bytes)
    this.#count(asLatin1(bytes), redacted === bytes ? undefined : asLatin1(redacted))
    return redacted
  }

  #count(before: string, after: string | undefined): void {
    this.images += before.split(imageMark).length - 1
    const old = markersIn(before)
    for (const [kind, count] of old) add(this.recorded, kind, count)
    if (after === undefined) return
    for (const [kind, count] of markersIn(after)) add(this.found, kind, count - (old.get(kind) ?? 0))
  }
}

/** What the user sees before the file is written. */
export function redactionPreview({ found, recorded, images }: RedactionTally): string {
  const said = [
    found.size === 0 ? 'No secrets found.' : `Removed now: ${listed(found)}.`,
    ...(recorded.size === 0 ? [] : [`Removed when it was recorded: ${listed(recorded)}.`]),
    ...(images === 0 ? [] : [`Included unchanged: ${counted(images, 'image')}.`]),
    'Text, names and paths remain. Read the file before you share it.',
  ]
  return `${said.join('\n')}\n`
}

function listed(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}

function markersIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  if (!text.includes('[redacted: ')) return counts
  for (const [, kind = ''] of text.matchAll(marker)) add(counts, kind, 1)
  return counts
}

function add(counts: Map<string, number>, kind: string, count: number): void {
  const sum = (counts.get(kind) ?? 0) + count
  if (sum > 0) counts.set(kind, sum)
}

function asLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
