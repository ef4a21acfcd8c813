import { text, type Content, type ToolResult, type Usage } from '@tapetree/session'
import { hashOf, isDeep } from './source-lines.ts'

/** Values of a foreign line. Every function accepts anything. */
export type Values = Record<string, unknown>

export function values(value: unknown): Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Values) : {}
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}

/** Undefined unless it is a string with something in it. */
export function words(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Undefined unless it is a count that can be added. */
export function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 && value < 1e15 ? value : undefined
}

/** ISO 8601 from a string, or from seconds or milliseconds since 1970. */
export function time(value: unknown): string | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : (count(value) ?? NaN)
  if (!Number.isFinite(ms) || ms <= 0) return undefined
  const date = new Date(typeof value === 'number' && ms < 1e11 ? ms * 1000 : ms)
  return Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999 ? undefined : date.toISOString()
}

/** The id of a tool call; a long or absent one gets a hash in its place. */
export function callId(value: unknown, otherwise: string): string {
  const id = words(value)
  return id !== undefined && id.length <= 200 ? id : `imported-${hashOf(id ?? otherwise).slice(0, 24)}`
}

/** A name of a tool or a model that fits into one line. */
export function name(value: unknown, otherwise: string): string {
  return words(value)?.slice(0, 200) ?? otherwise
}

/** The input of a tool: an object, or text that may be the JSON of one. */
export function inputOf(value: unknown): Values {
  if (typeof value !== 'string') return Array.isArray(value) ? { input: value } : values(value)
  if (value === '') return {}
  try {
    const parsed: unknown = isDeep(value, maxInputDepth) ? undefined : JSON.parse(value)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Values
  } catch {
    // Not JSON: some tools take plain text.
  }
  return { input: value }
}

const maxInputDepth = 40

/** An image from base64. Other bytes than those of an image become a note, since no provider would accept them. */
export function image(data: unknown, mediaType: unknown): Content {
  const bytes = typeof data === 'string' ? Buffer.from(data.slice(0, 64), 'base64') : Buffer.alloc(0)
  const known = imageTypeOf(bytes)
  if (known && /^[A-Za-z0-9+/=\s_-]+$/.test(data as string)) {
    return { type: 'image', image: { source: { type: 'base64', mediaType: known, data: data as string } } }
  }
  const type = name(mediaType, 'of unknown type').slice(0, 60)
  if (words(mediaType) !== undefined && !type.startsWith('image/'))
    return text(`[A file (${type}) was left out: a message holds text and images only.]`)
  return text(`[An image (${type}) was left out: its bytes are not those of an image.]`)
}

/** An image from a URL; one with the data in it becomes bytes. */
export function imageFromUrl(value: unknown): Content {
  const url = words(value) ?? ''
  const inline = /^data:([^;,]{1,100});base64,/.exec(url)
  if (inline) return image(url.slice(inline[0].length), inline[1])
  if (!/^https?:\/\//.test(url) || url.length > 4096) return image(undefined, undefined)
  return { type: 'image', image: { source: { type: 'url', mediaType: 'image/*', data: url } } }
}

function imageTypeOf(bytes: Buffer): string | undefined {
  const start = bytes.toString('latin1')
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(start)) return 'image/gif'
  return start.startsWith('RIFF') && start.slice(8, 12) === 'WEBP' ? 'image/webp' : undefined
}

/** A block of a kind that we do not know, as text. Bytes in it, such as those of a document, would only fill the context of a model. */
export function unknownBlock(block: unknown): Content {
  if (typeof block === 'string') return text(block)
  const said = JSON.stringify(block, (_, value: unknown) =>
    typeof value === 'string' && value.length > maxBytesAsText && base64.test(value)
      ? `(${value.length} characters of base64 were left out)`
      : value,
  )
  return text(`[${said}]`)
}

const maxBytesAsText = 1024
const base64 = /^(?:data:[^,]{0,100},)?[A-Za-z0-9+/=_-]+$/

/** The thinking of a model. Its proofs are kept where no request takes them from: they are worthless to other models. */
export function reasoning(said: string, proof: Values = {}): Content {
  const has = Object.values(proof).some((value) => value !== undefined && value !== null)
  return {
    type: 'reasoning',
    reasoning: { text: said, ...(has && { providerMetadata: { imported: proof } }) },
  }
}

export function toolUse(call: { id: string; name: string; input: Values; proof?: unknown }): Content {
  const { proof, ...rest } = call
  return {
    type: 'tool_use',
    toolUse: { ...rest, ...(proof !== undefined && { providerMetadata: { imported: { signature: proof } } }) },
  }
}

export function toolResult(result: ToolResult): Content {
  return { type: 'tool_result', toolResult: result }
}

export function isBlank(blocks: readonly Content[]): boolean {
  return blocks.every((block) => block.type === 'text' && block.text.content === '')
}

/** Only counts that are there. */
export function usage(counts: { [K in keyof Usage]: number | undefined }): Usage | undefined {
  const known = Object.entries(counts).filter(([, value]) => value !== undefined && value > 0)
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/** A sum, if at least one of the counts is there. */
export function sum(...counts: unknown[]): number | undefined {
  const known = counts.map(count).filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0)
}

/** How much more the second has: programs repeat what was used so far. A total that fell began anew. */
export function usageSince(before: Usage | undefined, now: Usage | undefined): Usage | undefined {
  if (!now || !before) return now
  const names = Object.keys(now) as (keyof Usage)[]
  const fell = names.some((each) => (now[each] ?? 0) < (before[each] ?? 0) - 1e-9)
  if (fell) return now
  return usage(Object.fromEntries(names.map((each) => [each, (now[each] ?? 0) - (before[each] ?? 0)])))
}
