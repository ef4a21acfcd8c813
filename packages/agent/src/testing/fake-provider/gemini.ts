import type { FakeErrorKind, FakeFinish } from './fake-script.ts'
import { geminiRules } from './gemini-rules.ts'
import { sseFrame, type FrameWriter, type SpokenContent, type WholeAnswer, type WireFormat } from './wire-format.ts'

export const gemini: WireFormat = {
  api: 'google-generate-content',
  basePath: '/v1beta',
  route: (path) => {
    const model = /^\/v1beta\/models\/([^/]+):streamGenerateContent$/.exec(path)?.[1]
    return model === undefined ? undefined : { model }
  },
  rules: geminiRules,
  frames: (answer) => new GeminiFrames(answer),
  keepAlive: ': keep-alive\n\n',
  error: (kind, { message }) => {
    const { code, ...error } = errorOf(kind, message)
    return { status: code, body: { error: { code, ...error } } }
  },
  errorFrame: (kind, message) => sseFrame({ error: errorOf(kind, message) }),
}

class GeminiFrames implements FrameWriter {
  readonly #answer: WholeAnswer
  readonly #inputs = new Map<number, string>()
  #chunks = 0
  /** The last thought, until a call takes it: Gemini signs the first call that follows a thought. */
  #signature: string | undefined

  constructor(answer: WholeAnswer) {
    this.#answer = answer
  }

  begin(): string[] {
    return []
  }

  open(_: SpokenContent, index: number): string[] {
    this.#inputs.set(index, '')
    this.#chunks = 0
    return []
  }

  chunk(content: SpokenContent, index: number, text: string): string[] {
    this.#chunks += 1
    switch (content.type) {
      case 'text':
        return [this.#part({ text })]
      case 'reasoning': {
        const isLast = this.#chunks === content.chunks.length
        return [this.#part({ text, thought: true, ...(isLast && signed(content.signature)) })]
      }
      case 'tool_call':
        // It comes whole: there are no deltas of an input here.
        this.#inputs.set(index, `${this.#inputs.get(index)}${text}`)
        return []
      default:
        content satisfies never
        return []
    }
  }

  close(content: SpokenContent, index: number): string[] {
    if (content.type === 'text') return []
    if (content.type === 'reasoning') {
      this.#signature = content.signature
      return content.chunks.length > 0 ? [] : [this.#part({ text: '', thought: true, ...signed(content.signature) })]
    }
    const args = parse(this.#inputs.get(index) ?? '')
    if (args === undefined) return []
    const signature = this.#signature
    this.#signature = undefined
    return [this.#part({ functionCall: { id: content.id, name: content.name, args }, ...signed(signature) })]
  }

  end(): string[] {
    const { usage, finish } = this.#answer
    const isWhole = [...this.#inputs].every(([index, input]) => {
      return this.#answer.content[index]?.type !== 'tool_call' || parse(input) !== undefined
    })
    const finishReason = isWhole ? finishReasons[finish] : 'MALFORMED_FUNCTION_CALL'
    const usageMetadata = {
      promptTokenCount: usage.input,
      cachedContentTokenCount: usage.cacheRead,
      candidatesTokenCount: usage.output - usage.reasoning,
      thoughtsTokenCount: usage.reasoning,
      totalTokenCount: usage.input + usage.output,
    }
    return [this.#frame([{ content: { role: 'model', parts: [] }, finishReason, index: 0 }], { usageMetadata })]
  }

  #part(part: Record<string, unknown>): string {
    return this.#frame([{ content: { role: 'model', parts: [part] }, index: 0 }])
  }

  #frame(candidates: unknown[], more: Record<string, unknown> = {}): string {
    const { number, model } = this.#answer
    return sseFrame({ candidates, ...more, modelVersion: model, responseId: `fake-${number}` })
  }
}

function signed(signature: string | undefined): { thoughtSignature?: string } {
  return signature === undefined ? {} : { thoughtSignature: signature }
}

function parse(input: string): unknown {
  try {
    return input === '' ? {} : (JSON.parse(input) as unknown)
  } catch {
    return undefined // such a call never reaches the client: Gemini says that it was malformed
  }
}

const finishReasons: Record<FakeFinish, string> = {
  stop: 'STOP',
  'tool-calls': 'STOP',
  length: 'MAX_TOKENS',
  'content-filter': 'SAFETY',
}

interface GeminiError {
  code: number
  message: string
  status: string
  details?: unknown[]
}

function errorOf(kind: FakeErrorKind, message?: string): GeminiError {
  const { message: words, ...error } = errors[kind]
  return { ...error, message: message ?? words }
}

const errors: Record<FakeErrorKind, GeminiError> = {
  // Of every limit Google says this; a retry delay may come with it.
  'rate-limited': {
    code: 429,
    message: 'You exceeded your current quota, please check your plan and billing details.',
    status: 'RESOURCE_EXHAUSTED',
    details: [quotaFailure('GenerateRequestsPerMinutePerProjectPerModel')],
  },
  'server-error': { code: 500, message: 'An internal error has occurred.', status: 'INTERNAL' },
  unavailable: { code: 503, message: 'The service is currently unavailable.', status: 'UNAVAILABLE' },
  overloaded: { code: 503, message: 'The model is overloaded. Please try again later.', status: 'UNAVAILABLE' },
  'context-overflow': {
    code: 400,
    message: 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    status: 'INVALID_ARGUMENT',
  },
  auth: {
    code: 400,
    message: 'API key not valid. Please pass a valid API key.',
    status: 'INVALID_ARGUMENT',
    details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
  },
  quota: {
    code: 429,
    message: 'You exceeded your current quota, please check your plan and billing details.',
    status: 'RESOURCE_EXHAUSTED',
    details: [quotaFailure('GenerateRequestsPerDayPerProjectPerModel')],
  },
  'invalid-request': {
    code: 400,
    message: 'Invalid value at timeout: it must be a number.',
    status: 'INVALID_ARGUMENT',
  },
}

function quotaFailure(quotaId: string): unknown {
  return { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId }] }
}
