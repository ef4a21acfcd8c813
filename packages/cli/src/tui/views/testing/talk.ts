import { text, type Content } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type LiveKind, type Transcript } from '@tapetree/session/view'

/** The time of every line. */
export const talkTime = Date.parse('2026-01-02T03:04:05.000Z')

/** A conversation in progress: each call adds a log line, or live text beside it. */
export class Talk {
  transcript: Transcript = emptyTranscript()
  #seq: number
  #parentId: string | null

  /** `after`: how many earlier lines of the log are not loaded. */
  constructor({ after = 0 }: { after?: number } = {}) {
    this.#seq = after
    this.#parentId = after === 0 ? null : `e${after}`
  }

  /** The id of the last entry, such as `e3`. */
  get lastId(): string {
    return this.#parentId ?? ''
  }

  user(words: string): this {
    return this.message({ role: 'user', content: [text(words)] })
  }

  assistant(...content: (Content | string)[]): this {
    const blocks = content.map((block) => (typeof block === 'string' ? text(block) : block))
    return this.message({ role: 'assistant', content: blocks })
  }

  result(callId: string, content: string | Content[], isError = false): this {
    const toolResult = { toolUseId: callId, content, isError }
    return this.message({ role: 'tool', content: [{ type: 'tool_result', toolResult }] })
  }

  message(message: Record<string, unknown>): this {
    return this.entry('message', { message })
  }

  entry(type: string, payload: Record<string, unknown>): this {
    const id = `e${this.#seq + 1}`
    this.#take({ type, id, parentId: this.#parentId, ...payload })
    this.#parentId = id
    return this
  }

  record(type: string, payload: Record<string, unknown>): this {
    this.#take({ type, id: `r${this.#seq + 1}`, ...payload })
    return this
  }

  lose(count: number): this {
    this.transcript = reduceTranscript(this.transcript, { type: 'lost', seq: this.#seq + 1, count })
    this.#seq += count
    return this
  }

  live(item: string, kind: LiveKind, words: string, part = 0): this {
    const known = this.transcript.inFlight.get(item)?.parts.find((each) => each.part === part && each.kind === kind)
    const off = known ? known.off + known.text.length : 0
    this.transcript = reduceTranscript(this.transcript, { type: 'delta', item, part, kind, off, text: words, run: 'r' })
    return this
  }

  #take(line: Record<string, unknown>): void {
    const whole = { ...line, seq: ++this.#seq, timestamp: new Date(talkTime).toISOString() }
    this.transcript = reduceTranscript(this.transcript, { type: 'line', line: whole as unknown as Line })
  }
}

export function call(id: string, name: string, input: Record<string, unknown> = {}): Content {
  return { type: 'tool_use', toolUse: { id, name, input } }
}
