import { anthropicRules } from './anthropic-rules.ts'
import type { FakeErrorKind, FakeFinish } from './fake-script.ts'
import { sseFrame, type FrameWriter, type SpokenContent, type WholeAnswer, type WireFormat } from './wire-format.ts'

export const anthropicMessages: WireFormat = {
  api: 'anthropic-messages',
  basePath: '/v1',
  route: (path) => (path === '/v1/messages' ? {} : undefined),
  rules: anthropicRules,
  frames: (answer) => new MessageFrames(answer),
  keepAlive: event({ type: 'ping' }),
  error: (kind, { message }) => {
    const [status, type, words] = errors[kind]
    return { status, body: { type: 'error', error: { type, message: message ?? words }, request_id: 'req_fake' } }
  },
  errorFrame: (kind, message) => {
    const [, type, words] = errors[kind]
    return event({ type: 'error', error: { type, message: message ?? words } })
  },
}

class MessageFrames implements FrameWriter {
  readonly #answer: WholeAnswer

  constructor(answer: WholeAnswer) {
    this.#answer = answer
  }

  begin(): string[] {
    const { number, model, usage } = this.#answer
    const message = {
      id: `msg_fake_${number}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: usage.input - usage.cacheRead - usage.cacheWrite,
        cache_creation_input_tokens: usage.cacheWrite,
        cache_read_input_tokens: usage.cacheRead,
        output_tokens: 1,
      },
    }
    return [event({ type: 'message_start', message }), event({ type: 'ping' })]
  }

  open(content: SpokenContent, index: number): string[] {
    return [event({ type: 'content_block_start', index, content_block: emptyBlock(content) })]
  }

  chunk(content: SpokenContent, index: number, text: string): string[] {
    return [event({ type: 'content_block_delta', index, delta: deltaOf(content, text) })]
  }

  close(content: SpokenContent, index: number): string[] {
    const signature = content.type === 'reasoning' ? content.signature : undefined
    return [
      ...(signature === undefined
        ? []
        : [event({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } })]),
      event({ type: 'content_block_stop', index }),
    ]
  }

  end(): string[] {
    const { usage, finish } = this.#answer
    const delta = { stop_reason: stopReasons[finish], stop_sequence: null }
    const output = { output_tokens: usage.output, output_tokens_details: { thinking_tokens: usage.reasoning } }
    return [event({ type: 'message_delta', delta, usage: output }), event({ type: 'message_stop' })]
  }
}

function event(data: { type: string } & Record<string, unknown>): string {
  return sseFrame(data, data.type)
}

function emptyBlock(content: SpokenContent): Record<string, unknown> {
  if (content.type === 'text') return { type: 'text', text: '' }
  if (content.type === 'reasoning') return { type: 'thinking', thinking: '', signature: '' }
  return { type: 'tool_use', id: content.id, name: content.name, input: {} }
}

function deltaOf(content: SpokenContent, text: string): Record<string, unknown> {
  if (content.type === 'text') return { type: 'text_delta', text }
  if (content.type === 'reasoning') return { type: 'thinking_delta', thinking: text }
  return { type: 'input_json_delta', partial_json: text }
}

const stopReasons: Record<FakeFinish, string> = {
  stop: 'end_turn',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  'content-filter': 'refusal',
}

const errors: Record<FakeErrorKind, [status: number, type: string, words: string]> = {
  'rate-limited': [429, 'rate_limit_error', 'This request would exceed your rate limit of 50 requests per minute.'],
  'server-error': [500, 'api_error', 'Internal server error'],
  unavailable: [503, 'api_error', 'Service unavailable'],
  overloaded: [529, 'overloaded_error', 'Overloaded'],
  'context-overflow': [400, 'invalid_request_error', 'prompt is too long: 213462 tokens > 200000 maximum'],
  auth: [401, 'authentication_error', 'invalid x-api-key'],
  quota: [
    400,
    'invalid_request_error',
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  ],
  'invalid-request': [400, 'invalid_request_error', 'tools.0.input_schema: the timeout of a tool must be a number'],
}
