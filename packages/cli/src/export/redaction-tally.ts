import type { Redactor } from '@tapetree/agent'
import { counted } from '../text/amounts.ts'

/** As it stands in JSON; inside of a text its quotes would be escaped. */
const imageMark = '"type":"image"'
const marker = /\[redacted: ([\w-]+)\]/g

/** A redactor that counts what it takes out, by kind. */
export class RedactionTally {
  /** Itself, for what is counted elsewhere. */
  readonly redactor: Redactor
  /** Taken out on the way to the file. */
  readonly found = new Map<string, number>()
  /** Taken out before, when it was recorded. */
  readonly recorded = new Map<string, number>()
  /** Pictures cannot be looked into. */
  images = 0

  constructor(redactor: Redactor) {
    this.redactor = redactor
  }

  json<T>(value: T): T {
    const redacted = this.redactor.json(value)
    this.#count(JSON.stringify(value), redacted === value ? undefined : JSON.stringify(redacted))
    return redacted
  }

  /** A value that is no JSON, such as a blob or a line that cannot be read. */
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

/** What a person is told before a file goes out. */
export function redactionPreview({ found, recorded, images }: RedactionTally): string {
  const said = [
    found.size === 0 ? 'No secret was found in it.' : `Taken out now: ${listed(found)}.`,
    ...(recorded.size === 0 ? [] : [`Taken out when it was recorded: ${listed(recorded)}.`]),
    ...(images === 0 ? [] : [`Goes out as it is: ${counted(images, 'image')}.`]),
    'Words, names and paths stay. Read it before you share it.',
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
