import { limits, type TextFrame } from '@tapetree/client/protocol'
import type { Line } from '@tapetree/session/format'
import type { LiveText } from '@tapetree/session/view'

/** Text of one part that is streaming. */
export interface FlyingPart {
  readonly item: string
  readonly part: number
  readonly kind: LiveText['kind']
  readonly run: string | undefined
  /** Offset of `text`: of an endless part only the newest text is held. */
  off: number
  text: string
  /** The end of `text` since the last frame that reached it. Slicing `text` copies all of it, however little is new. */
  fresh: { off: number; text: string }
  /** The last frame made of it: most connections need the same one. */
  frame?: { off: number; end: number; bytes: Buffer } | undefined
}

const maxHeld = 256 * 1024
/** How many completed items are remembered. */
const maxLanded = 1000

/** The text in flight: level-triggered, like everything that may be lost. */
export class InFlight {
  readonly #items = new Map<string, FlyingPart[]>()
  /** A stopped tool may continue to print after its result; that text is dropped. */
  readonly #landed = new Set<string>()

  get isEmpty(): boolean {
    return this.#items.size === 0
  }

  *parts(): Generator<FlyingPart> {
    for (const parts of this.#items.values()) yield* parts
  }

  /** Returns whether there is new text. */
  take({ item, part, kind, off, text, run }: LiveText): boolean {
    if (this.#landed.has(item)) return false
    const parts = this.#items.get(item) ?? []
    let known = parts.find((each) => each.part === part && each.kind === kind)
    if (!known) {
      known = { item, part, kind, run, off, text: '', fresh: { off, text: '' } }
      parts.push(known)
      this.#items.set(item, parts)
    }
    const end = known.off + known.text.length
    // A hole: earlier text is dropped.
    if (off > end) Object.assign(known, { off, text: '', fresh: { off, text: '' } })
    const added = off > end ? text : text.slice(end - off)
    known.text += added
    known.fresh.text += added
    if (known.text.length > 2 * maxHeld) {
      const cut = wholeFrom(known.text, known.text.length - maxHeld)
      known.off += cut
      known.text = known.text.slice(cut)
    }
    return true
  }

  /** Removes text whose line is in the log. */
  land(line: Line): void {
    if (this.#items.has(line.id)) this.#end(line.id)
    if (line.type === 'attempt') this.#end(line.attempt.item)
    // Another branch may make the same call again, and some models reuse call ids in every answer.
    if (line.type === 'tool_start') this.#landed.delete(line.toolStart.callId)
    if (line.type === 'message') {
      for (const block of line.message.content) {
        if (block.type === 'tool_result') this.#end(block.toolResult.toolUseId)
      }
    }
    if (line.type !== 'run_end') return
    for (const [item, parts] of this.#items) {
      if (parts.some(({ run }) => run === line.runEnd.runId)) this.#end(item)
    }
  }

  #end(item: string): void {
    this.#items.delete(item)
    this.#landed.add(item)
    const [oldest] = this.#landed
    if (this.#landed.size > maxLanded && oldest !== undefined) this.#landed.delete(oldest)
  }
}

/** The frame with the text after `from`; undefined if there is none. */
export function textFrame(flying: FlyingPart, from: number): { bytes: Buffer; end: number } | undefined {
  const isPartial = from < flying.off
  const start = isPartial ? flying.off : from
  const flyingEnd = flying.off + flying.text.length
  if (start >= flyingEnd) return undefined
  if (!isPartial && flying.frame?.off === start && flying.frame.end === flyingEnd) return flying.frame
  const held = start >= flying.fresh.off ? flying.fresh : flying
  const { item, part, kind, run } = flying
  const bytesOf = (text: string): Buffer => {
    const data: TextFrame = { item, part, kind, off: start, text, ...(run !== undefined && { run }) }
    return Buffer.from(JSON.stringify({ type: isPartial ? 'partial' : 'delta', data }))
  }
  let text = cutWhole(held.text.slice(start - held.off), limits.maxTextLength)
  if (text === '') return undefined
  let bytes = bytesOf(text)
  if (bytes.length > limits.maxFrameBytes) {
    // A terminal control character takes six bytes in JSON.
    text = cutWhole(text, limits.maxTextLength / 2)
    bytes = bytesOf(text)
  }
  const made = { off: start, end: start + text.length, bytes }
  if (!isPartial) flying.frame = made
  if (made.end === flyingEnd) flying.fresh = { off: flyingEnd, text: '' }
  return made
}

/** The share of a frame that a list may take: every screen receives it after each change. */
const maxListBytes = limits.maxFrameBytes / 4

/** As many items as fit into a frame, in order: all unchanged, or all shortened, or the first of the shortened ones. */
export function fitFrame<T>(items: readonly T[], { shorten = (item) => item }: { shorten?: (item: T) => T } = {}): T[] {
  if (countFitting(items) === items.length) return [...items]
  const short = items.map(shorten)
  return short.slice(0, countFitting(short))
}

function countFitting(items: readonly unknown[]): number {
  let bytes = 0
  const tooMany = items.findIndex((item) => (bytes += Buffer.byteLength(JSON.stringify(item)) + 1) > maxListBytes)
  return tooMany === -1 ? items.length : tooMany
}

/** At most this many code units, without splitting a surrogate pair at the end. */
export function cutWhole(text: string, length: number): string {
  const cut = text.length > length ? text.slice(0, length) : text
  return isHighSurrogate(cut.charCodeAt(cut.length - 1)) ? cut.slice(0, -1) : cut
}

/** The index, or the next one if it would split a surrogate pair. */
function wholeFrom(text: string, index: number): number {
  return isHighSurrogate(text.charCodeAt(index - 1)) ? index + 1 : index
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}
