import type { Draw } from './draw.ts'
import { unknownKinds } from './kinds.ts'
import type { Subject } from './subjects.ts'

export type Json = Record<string, unknown>

/** What an answer is to have. */
export interface Wish {
  subject: Subject
  /** Unique among the answers of a conversation; part of every text and id. */
  mark: string
  calls: number
  hasReasoning: boolean
  /** The input of the last call is not whole. Gemini sends inputs as objects, so they are always whole. */
  isMalformed: boolean
  /** Kinds that no provider has sent so far are mixed in. */
  hasUnknown: boolean
  ending: Ending
}

/**
 * `refused`: the provider does not want to answer. `paused`: it wants to be asked again to go on. `empty`: it says nothing.
 * `failed` and `quota`: an error takes the place of the end.
 */
export type Ending = 'complete' | 'refused' | 'paused' | 'empty' | 'failed' | 'quota'

/** Collects the events of a stream. */
export class Composer {
  /** The siblings of known kinds that were mixed in. */
  readonly unknownKinds = new Set<string>()
  readonly counted = new Set<string>()
  readonly wish: Wish
  readonly draw: Draw
  readonly #frames: string[] = []
  readonly #lineEnd: string

  constructor(wish: Wish, draw: Draw) {
    this.wish = wish
    this.draw = draw
    this.#lineEnd = draw.chance(0.2) ? '\r\n' : '\n'
  }

  note(kind: string): void {
    this.unknownKinds.add(`${this.wish.subject.api} unknown ${kind}`)
  }

  event(data: Json, name?: string): void {
    this.frame(`${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}`)
  }

  /** Text of one frame, without the empty line behind it. */
  frame(text: string): void {
    this.#frames.push(text)
    if (this.draw.chance(0.05)) this.#frames.push(': keep-alive')
  }

  /** Members that a later version of the API may add. */
  unknown(place: string): Json {
    if (!this.wish.hasUnknown || !this.draw.chance(0.2)) return {}
    this.note(`member-of-${place}`)
    const count = this.draw.integer(1, 2)
    const value = (): unknown => this.draw.pick([null, 1, 'new', [], {}, { nested: [true] }, false])
    return Object.fromEntries(Array.from({ length: count }, () => [this.draw.pick(unknownMembers), value()]))
  }

  /** The names of siblings of known kinds to mix in at this place: usually none, sometimes several. */
  siblings(place: string): string[] {
    if (!this.wish.hasUnknown || !this.draw.chance(0.12)) return []
    const names = Array.from({ length: this.draw.integer(1, 3) }, () => this.sibling(place))
    // Deltas may belong to a block that is skipped as a whole.
    if (place !== 'delta') for (const name of names) this.counted.add(name)
    return names
  }

  /** A reason to end that no version of the agent knows. */
  unknownEnd(place: string): string | undefined {
    if (this.wish.ending !== 'complete' || !this.wish.hasUnknown || !this.draw.chance(0.12)) return undefined
    const name = this.sibling(place)
    this.counted.add(name)
    return name
  }

  sibling(place: string): string {
    const name = this.draw.pick(unknownKinds[this.wish.subject.api][place] ?? [])
    this.note(`${place} ${name}`)
    return name
  }

  /** Text in several pieces, and blocks that no version of the agent knows, in any order. */
  inOrder(parts: (() => void)[]): void {
    for (const part of this.draw.chance(0.4) ? this.draw.shuffled(parts) : parts) part()
  }

  /** An event that is not JSON, as a proxy may leave it. */
  damaged(): void {
    this.frame('data: {"type": "content_block_delta", "ind')
  }

  input(place: number): string {
    const { mark, subject, calls, isMalformed } = this.wish
    const isCut = isMalformed && place === calls - 1 && subject.api !== 'google'
    // What is cut off must not be part of the mark.
    const whole = JSON.stringify({ at: `${this.draw.text(mark)}${isCut ? ' and more' : ''}` })
    return isCut ? whole.slice(0, -this.draw.integer(1, 5)) : whole
  }

  toolName(): string {
    return this.draw.chance(0.05) ? 'no_such_tool' : 'look'
  }

  signature(): string {
    return `c2ln${this.wish.mark}${this.draw.letters('abcdefghij', 12)}==`
  }

  body(): string {
    const text = this.#frames.map((frame) => `${frame}\n\n`).join('')
    return this.#lineEnd === '\n' ? text : text.replaceAll('\n', '\r\n')
  }
}

/** Some have a meaning of their own in JavaScript. */
const unknownMembers = ['x_new_member', 'extra', 'constructor', 'toString', '__proto__', 'meta-data', '0']
