import type { TextFrame } from '@tapetree/client'
import { limits } from '@tapetree/client'
import type { Line, LiveText } from '@tapetree/session'
import { cutWhole, wholeFrom } from './fit-frame.ts'

/** Text of one part that is being streamed. */
export interface FlyingPart {
  readonly item: string
  readonly part: number
  readonly kind: LiveText['kind']
  readonly run: string | undefined
  /** Where `text` begins: of a part that goes on and on only the newest text is held. */
  off: number
  text: string
  /** The end of `text`, since a frame last reached it. Reading from `text` copies all of it, however little is new. */
  fresh: { off: number; text: string }
  /** The last frame that was made of it: most connections want the same. */
  frame?: { off: number; end: number; bytes: Buffer } | undefined
}

const maxHeld = 256 * 1024
/** Of how many items it is remembered that they are complete. */
const maxLanded = 1000

/** The text that is in flight: level-triggered, like all that may be lost. */
export class InFlight {
  readonly #items = new Map<string, FlyingPart[]>()
  /** A tool that was stopped may go on talking after its result: nobody is told. */
  readonly #landed = new Set<string>()

  get isEmpty(): boolean {
    return this.#items.size === 0
  }

  *parts(): Generator<FlyingPart> {
    for (const parts of this.#items.values()) yield* parts
  }

  /** Says whether there is anything new. */
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
    // A hole: what was before it is not worth keeping.
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

  /** What is in the log is not in flight any more. */
  land(line: Line): void {
    if (this.#items.has(line.id)) this.#end(line.id)
    if (line.type === 'attempt') this.#end(line.attempt.item)
    // On another branch the same call is made once more, and some models count their calls anew in every answer.
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

/** The frame with what a reader lacks who has been sent all before `from`; undefined where that is nothing. */
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
    // A control character of a terminal has six bytes in JSON.
    text = cutWhole(text, limits.maxTextLength / 2)
    bytes = bytesOf(text)
  }
  const made = { off: start, end: start + text.length, bytes }
  if (!isPartial) flying.frame = made
  if (made.end === flyingEnd) flying.fresh = { off: flyingEnd, text: '' }
  return made
}
