import type { Host, HostError } from '../../models/hosts.ts'
import type { FakeErrorKind, FakeFinish } from './fake-script.ts'
import { chatHost, openaiChatRules } from './openai-chat-rules.ts'
import { openaiErrors } from './openai-errors.ts'
import {
  created,
  sseFrame,
  type FrameWriter,
  type SpokenContent,
  type WholeAnswer,
  type WireFormat,
} from './wire-format.ts'

export const openaiChat: WireFormat = {
  api: 'openai-chat-completions',
  basePath: '/v1',
  route: (path) => {
    const route = /^(?:\/([a-z]+))?\/v1\/chat\/completions$/.exec(path)
    if (!route) return undefined
    const [, host] = route
    return host === undefined ? {} : chatHost(host) && { host }
  },
  rules: openaiChatRules,
  frames: (answer) => new ChatFrames(answer),
  keepAlive: ': keep-alive\n\n',
  error: (kind, { message, host }) => {
    const own = message === undefined ? errorsOf(host)[kind] : undefined
    if (own) return own
    const { status, type, code, words } = chatErrors[kind]
    return { status, body: { error: { message: message ?? words, type, param: null, code } } }
  },
  errorFrame: (kind, message) => {
    const { type, code, words, status } = chatErrors[kind]
    return sseFrame({ error: { message: message ?? words, type, code: code ?? status } })
  },
}

function errorsOf(host: string | undefined): Partial<Record<FakeErrorKind, HostError>> {
  return chatHost(host)?.errors ?? {}
}

const chatErrors: typeof openaiErrors = {
  ...openaiErrors,
  // The text of vLLM and many others.
  'context-overflow': {
    ...openaiErrors['context-overflow'],
    code: null,
    words: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  },
}

class ChatFrames implements FrameWriter {
  readonly #answer: WholeAnswer
  readonly #calls: SpokenContent[]
  readonly #host: Host | undefined

  constructor(answer: WholeAnswer) {
    this.#answer = answer
    this.#host = chatHost(answer.host)
    this.#calls = answer.content.filter(({ type }) => type === 'tool_call')
  }

  begin(): string[] {
    return [this.#delta({ role: 'assistant', content: '' })]
  }

  open(content: SpokenContent): string[] {
    if (content.type !== 'tool_call') return []
    const call = { index: this.#calls.indexOf(content), id: content.id, type: 'function' }
    return [this.#delta({ tool_calls: [{ ...call, function: { name: content.name, arguments: '' } }] })]
  }

  chunk(content: SpokenContent, _: number, text: string): string[] {
    if (content.type === 'text') return [this.#delta({ content: text })]
    if (content.type === 'reasoning') return [this.#delta(this.#reasoning(text))]
    return [this.#delta({ tool_calls: [{ index: this.#calls.indexOf(content), function: { arguments: text } }] })]
  }

  close(content: SpokenContent): string[] {
    const signature = content.type === 'reasoning' ? content.signature : undefined
    if (signature === undefined || this.#host?.reasoning !== 'reasoning_details') return []
    return [this.#delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: signature, index: 1 }] })]
  }

  end(): string[] {
    const { usage, finish } = this.#answer
    const counts = {
      prompt_tokens: usage.input,
      completion_tokens: usage.output - (this.#host?.reasoningTokens === 'beside' ? usage.reasoning : 0),
      total_tokens: usage.input + usage.output,
      prompt_tokens_details: { cached_tokens: usage.cacheRead },
      completion_tokens_details: { reasoning_tokens: usage.reasoning },
    }
    return [
      this.#chunk([{ index: 0, delta: {}, finish_reason: finishReasons[finish] }]),
      this.#chunk([], { usage: counts }),
      'data: [DONE]\n\n',
    ]
  }

  #reasoning(text: string): Record<string, unknown> {
    const kind = this.#host?.reasoning ?? 'reasoning_content'
    switch (kind) {
      case 'reasoning_content':
      case 'reasoning':
        return { [kind]: text }
      case 'reasoning_details':
        return { reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, index: 0 }] }
      case 'thinking-parts':
        return { content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }
      // Reasoning that is not sent back is not streamed separately either.
      case 'none':
      case 'blocks':
        return { content: text }
      default:
        kind satisfies never
        return {}
    }
  }

  #delta(delta: Record<string, unknown>): string {
    return this.#chunk([{ index: 0, delta, finish_reason: null }])
  }

  #chunk(choices: unknown[], more: Record<string, unknown> = {}): string {
    const { number, model } = this.#answer
    return sseFrame({
      id: `chatcmpl-fake-${number}`,
      object: 'chat.completion.chunk',
      created,
      model,
      choices,
      ...more,
    })
  }
}

const finishReasons: Record<FakeFinish, string> = {
  stop: 'stop',
  'tool-calls': 'tool_calls',
  length: 'length',
  'content-filter': 'content_filter',
}
