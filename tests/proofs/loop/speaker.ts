import type { Usage } from '@tapetree/session'
import { ModelError, type ModelPart } from '../../../packages/agent/src/models/model.ts'
import type { OpenCall } from './driven-model.ts'
import type { ToolName } from './driven-tools.ts'

/** The model says a little of its answer, one call of it, or its end with or without calls; or it fails. */
export type Words = 'delta' | 'ask' | 'end' | 'call' | 'cut' | 'error' | 'overflow'

/** Puts words into the model's mouth: no two calls say, ask for or use the same. */
export class Speaker {
  readonly #tools: readonly ToolName[]
  #words = 0
  #calls = 0
  /** More than the narrow window of a model that is full. */
  #inputTokens = 10_000

  constructor(tools: readonly ToolName[]) {
    this.#tools = tools
  }

  say(what: Words, to: OpenCall): void {
    switch (what) {
      case 'delta':
        return to.push({ parts: [...this.#early(to), this.#text('word')] })
      case 'ask':
        return to.push({ parts: [...this.#early(to), this.#call(this.#tools[0] as ToolName, ++to.calls)] })
      case 'end':
        return this.#end(to, [])
      case 'call':
        return this.#end(to, this.#tools)
      case 'cut': {
        const cutOff = {
          type: 'tool_call' as const,
          part: ++to.calls,
          callId: this.#callId(),
          name: 'look',
          input: '{"x":',
        }
        return to.push({ parts: [cutOff, { type: 'finish', reason: 'length' }], isLast: true })
      }
      case 'error':
        return to.push({ error: new ModelError('network', 'The line went dead.') })
      case 'overflow':
        return to.push({ error: new ModelError('context-overflow', 'It is too long.') })
      default:
        what satisfies never
    }
  }

  #end(to: OpenCall, tools: readonly ToolName[]): void {
    const spoken = to.said > 0 ? [] : [this.#text('end'), this.#usage()]
    const calls = tools.map((name) => this.#call(name, ++to.calls))
    const finish: ModelPart = { type: 'finish', reason: to.calls > 0 ? 'tool-calls' : 'stop' }
    to.push({ parts: [...spoken, ...calls, finish], isLast: true })
  }

  /** A call tells what it uses with its first words, so that it is known even if it is stopped. */
  #early(to: OpenCall): ModelPart[] {
    return to.said++ === 0 ? [this.#usage()] : []
  }

  #text(word: string): ModelPart {
    return { type: 'text_delta', part: 0, text: `${word} ${++this.#words} ` }
  }

  #call(name: ToolName, part: number): ModelPart {
    const callId = this.#callId()
    return { type: 'tool_call', part, callId, name, input: JSON.stringify({ callId }) }
  }

  #callId(): string {
    return `c${++this.#calls}`
  }

  #usage(): ModelPart {
    const inputTokens = ++this.#inputTokens
    const usage: Usage = { inputTokens, outputTokens: 1, totalTokens: inputTokens + 1 }
    return { type: 'usage', usage }
  }
}
