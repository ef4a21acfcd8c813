import type { FakeErrorKind } from './fake-script.ts'
import { openaiErrors } from './openai-errors.ts'
import { openaiResponsesRules } from './openai-responses-rules.ts'
import {
  created,
  sseFrame,
  type FrameWriter,
  type SpokenContent,
  type WholeAnswer,
  type WireFormat,
} from './wire-format.ts'

export const openaiResponses: WireFormat = {
  api: 'openai-responses',
  basePath: '/v1',
  route: (path) => (path === '/v1/responses' ? {} : undefined),
  rules: openaiResponsesRules,
  frames: (answer) => new ResponseFrames(answer),
  keepAlive: ': keep-alive\n\n',
  error: (kind, { message }) => {
    const { status, type, code, words } = openaiErrors[kind]
    return { status, body: { error: { message: message ?? words, type, param: null, code } } }
  },
  errorFrame,
}

/** A failed response reports the error as a whole; it has fewer codes than HTTP. */
function errorFrame(kind: FakeErrorKind, message?: string): string {
  const { streamCode, words } = openaiErrors[kind]
  return sseFrame(
    {
      type: 'response.failed',
      sequence_number: 99,
      response: { id: 'resp_fake', status: 'failed', error: { code: streamCode, message: message ?? words } },
    },
    'response.failed',
  )
}

type Item = Record<string, unknown>

class ResponseFrames implements FrameWriter {
  readonly #answer: WholeAnswer
  readonly #texts = new Map<number, string>()
  #sequence = 0

  constructor(answer: WholeAnswer) {
    this.#answer = answer
  }

  begin(): string[] {
    const response = this.#response('in_progress')
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })]
  }

  open(content: SpokenContent, index: number): string[] {
    this.#texts.set(index, '')
    const added = this.#event('response.output_item.added', {
      output_index: index,
      item: this.#item(content, index, false),
    })
    const place = { item_id: this.#itemId(content, index), output_index: index }
    if (content.type === 'text') {
      const part = { type: 'output_text', text: '', annotations: [] }
      return [added, this.#event('response.content_part.added', { ...place, content_index: 0, part })]
    }
    if (content.type === 'tool_call' || content.chunks.length === 0) return [added]
    const part = { type: 'summary_text', text: '' }
    return [added, this.#event('response.reasoning_summary_part.added', { ...place, summary_index: 0, part })]
  }

  chunk(content: SpokenContent, index: number, delta: string): string[] {
    this.#texts.set(index, `${this.#texts.get(index)}${delta}`)
    const place = { item_id: this.#itemId(content, index), output_index: index, delta }
    if (content.type === 'text') return [this.#event('response.output_text.delta', { ...place, content_index: 0 })]
    if (content.type === 'tool_call') return [this.#event('response.function_call_arguments.delta', place)]
    return [this.#event('response.reasoning_summary_text.delta', { ...place, summary_index: 0 })]
  }

  close(content: SpokenContent, index: number): string[] {
    const text = this.#texts.get(index)
    const place = { item_id: this.#itemId(content, index), output_index: index }
    const done = this.#event('response.output_item.done', {
      output_index: index,
      item: this.#item(content, index, true),
    })
    if (content.type === 'text') {
      return [this.#event('response.output_text.done', { ...place, content_index: 0, text }), done]
    }
    if (content.type === 'tool_call') {
      return [this.#event('response.function_call_arguments.done', { ...place, arguments: text }), done]
    }
    if (content.chunks.length === 0) return [done]
    const part = { type: 'summary_text', text }
    return [this.#event('response.reasoning_summary_part.done', { ...place, summary_index: 0, part }), done]
  }

  end(): string[] {
    const { finish, usage } = this.#answer
    const reason =
      finish === 'length' ? 'max_output_tokens' : finish === 'content-filter' ? 'content_filter' : undefined
    const status = reason === undefined ? 'completed' : 'incomplete'
    const response = {
      ...this.#response(status),
      incomplete_details: reason === undefined ? null : { reason },
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cacheRead },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      },
    }
    return [this.#event(`response.${status}`, { response })]
  }

  #response(status: string): Item {
    const { number, model } = this.#answer
    return { id: `resp_fake_${number}`, object: 'response', created_at: created, status, model, output: [] }
  }

  #item(content: SpokenContent, index: number, isDone: boolean): Item {
    const id = this.#itemId(content, index)
    const text = this.#texts.get(index) ?? ''
    const status = isDone ? 'completed' : 'in_progress'
    switch (content.type) {
      case 'text': {
        const said = isDone ? [{ type: 'output_text', text, annotations: [] }] : []
        return { type: 'message', id, status, role: 'assistant', content: said }
      }
      case 'reasoning': {
        const summary = isDone && content.chunks.length > 0 ? [{ type: 'summary_text', text }] : []
        return { type: 'reasoning', id, summary, encrypted_content: isDone ? (content.signature ?? null) : null }
      }
      case 'tool_call':
        return {
          type: 'function_call',
          id,
          status,
          call_id: content.id,
          name: content.name,
          arguments: isDone ? text : '',
        }
      default:
        content satisfies never
        return {}
    }
  }

  #itemId(content: SpokenContent, index: number): string {
    const kind = { text: 'msg', reasoning: 'rs', tool_call: 'fc' }[content.type]
    return `${kind}_fake_${this.#answer.number}_${index}`
  }

  #event(type: string, data: Item): string {
    this.#sequence += 1
    return sseFrame({ type, sequence_number: this.#sequence, ...data }, type)
  }
}
