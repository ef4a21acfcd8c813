import { payloadOf } from '../line/codec.ts'
import { isObject } from '../util/json.ts'
import type { DiskLine } from '../line/line.ts'

const usageNames = [
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'total_tokens',
  'cost',
] as const

/** Counts and sums that a list shows without reading the session. */
export class Totals {
  entries = 0
  messages = 0
  /** Number of assistant messages. */
  turns = 0
  /** Number of tool calls in those messages. */
  toolCalls = 0
  /** Total duration of the runs that have ended, in milliseconds. */
  runMs = 0
  /** Time of the last message, or of the last start of a command of the user. */
  modified = ''
  firstText = ''
  readonly usage: Record<(typeof usageNames)[number], number> = {
    input_tokens: 0,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    total_tokens: 0,
    cost: 0,
  }

  count(line: DiskLine): void {
    this.entries++
    if (line.type !== 'message') return
    this.messages++
    if (typeof line.timestamp === 'string') this.modified = line.timestamp
    const message = payloadOf(line)
    this.addUsage(message['usage'])
    if (message['role'] === 'assistant') this.#countAnswer(message['content'])
    if (this.firstText === '' && message['role'] === 'user') this.firstText = firstTextOf(message['content'])
  }

  /** A command of the user has begun. */
  begun({ timestamp }: DiskLine): void {
    if (typeof timestamp === 'string') this.modified = timestamp
  }

  addRun(durationMs: unknown): void {
    if (typeof durationMs === 'number' && Number.isFinite(durationMs)) this.runMs += durationMs
  }

  addUsage(usage: unknown): void {
    if (!isObject(usage)) return
    for (const name of usageNames) {
      const value = usage[name]
      if (typeof value === 'number' && Number.isFinite(value)) this.usage[name] += value
    }
  }

  toCheckpoint(): unknown {
    const { entries, messages, turns, toolCalls, runMs, modified, firstText, usage } = this
    return { entries, messages, turns, toolCalls, runMs, modified, firstText, usage }
  }

  restore(saved: unknown): void {
    Object.assign(this, saved)
  }

  #countAnswer(content: unknown): void {
    this.turns++
    if (!Array.isArray(content)) return
    this.toolCalls += content.filter((block) => isObject(block) && block['type'] === 'tool_use').length
  }
}

function firstTextOf(content: unknown): string {
  if (!Array.isArray(content)) return ''
  for (const block of content) {
    const text: unknown = isObject(block) && isObject(block['text']) ? block['text']['content'] : undefined
    if (typeof text === 'string' && text.trim() !== '') return text.trim().slice(0, 200)
  }
  return ''
}
