import { emptyTranscript, type ToolCallPart, type Transcript, type TranscriptItem } from '@tapetree/session'
import type { CallNews } from './item-context.ts'

/** What is known of the calls of an answer while they wait and run. */
export class CallNewsFeed {
  readonly #now: () => number
  readonly #startedAt = new Map<string, number>()
  #calls: ReadonlySet<string> = new Set()
  #transcript = emptyTranscript()
  #isFirst = true

  constructor(now: () => number) {
    this.#now = now
  }

  /** `live`: the answer whose calls are carried out. */
  update(transcript: Transcript, live: TranscriptItem | undefined): void {
    this.#transcript = transcript
    const calls = live?.type === 'assistant' ? live.parts.filter((part) => part.type === 'tool_call') : []
    this.#calls = new Set(calls.map(({ callId }) => callId))
    for (const callId of this.#startedAt.keys()) if (!this.#calls.has(callId)) this.#startedAt.delete(callId)
    for (const call of calls) this.#note(call, live?.timestamp ?? '')
    this.#isFirst &&= transcript.seq === 0
  }

  isCall(id: string): boolean {
    return this.#calls.has(id)
  }

  of(callId: string): CallNews | undefined {
    if (!this.#calls.has(callId)) return undefined
    const output = this.#transcript.inFlight
      .get(callId)
      ?.parts.map(({ text }) => text)
      .join('')
    const startedAt = this.#startedAt.get(callId)
    const isAsked = this.#transcript.permissions.some((request) => request.callId === callId)
    return { isAsked, ...(output !== undefined && { output }), ...(startedAt !== undefined && { startedAt }) }
  }

  /** The log tells when a call began only to whoever watched; who comes later counts from the answer that asked for it. */
  #note({ callId, status }: ToolCallPart, answeredAt: string): void {
    if (status !== 'running' || this.#startedAt.has(callId)) return
    const answered = Date.parse(answeredAt)
    this.#startedAt.set(callId, this.#isFirst && Number.isFinite(answered) ? answered : this.#now())
  }
}
