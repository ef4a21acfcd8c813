import type {
  LanguageModelV2,
  LanguageModelV2CallOptions,
  LanguageModelV2StreamPart,
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'

/**
 * Adapts a language model of an older specification to the newest one. Older models have no reasoning option: it is
 * omitted, and provider options set how much they think.
 */
export function asLanguageModelV4(model: LanguageModelV2 | LanguageModelV3 | LanguageModelV4): LanguageModelV4 {
  switch (model.specificationVersion) {
    case 'v4':
      return model
    case 'v3':
      return adapted(model, async (options) => {
        const { stream } = await model.doStream(olderOptions(options, imageOfV3) as LanguageModelV3CallOptions)
        // Only parts for content that we do not keep, such as files, differ.
        return stream as ReadableStream<LanguageModelV4StreamPart>
      })
    case 'v2':
      return adapted(model, async (options) => {
        const { stream } = await model.doStream(olderOptions(options, imageOfV2) as LanguageModelV2CallOptions)
        return stream.pipeThrough(
          new TransformStream<LanguageModelV2StreamPart, LanguageModelV4StreamPart>({
            transform: (part, controller) => controller.enqueue(partOfV2(part, model.provider)),
          }),
        )
      })
    default:
      model satisfies never
      throw new TypeError(`Language models of specification ${specificationOf(model)} are not supported.`)
  }
}

function specificationOf(model: unknown): string {
  const version = (model as { specificationVersion?: unknown } | undefined)?.specificationVersion
  return typeof version === 'string' ? version : 'v1 or older'
}

type DoStream = (options: LanguageModelV4CallOptions) => Promise<ReadableStream<LanguageModelV4StreamPart>>

function adapted(model: LanguageModelV2 | LanguageModelV3, doStream: DoStream): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: () => Promise.reject(new Error('Only streaming is supported.')),
    doStream: async (options) => ({ stream: await doStream(options) }),
  }
}

type ResultPart = (LanguageModelV4ToolResultOutput & { type: 'content' })['value'][number]
type FilePart = Extract<ResultPart, { type: 'file' }>
type FileData = FilePart['data']

function olderOptions(options: LanguageModelV4CallOptions, imageOf: (part: FilePart) => unknown): unknown {
  const { reasoning: _, ...others } = options
  return { ...others, prompt: olderPrompt(options.prompt, imageOf) }
}

function olderPrompt(prompt: LanguageModelV4Prompt, imageOf: (part: FilePart) => unknown): unknown[] {
  return prompt.map((message) => {
    if (message.role === 'system') return message
    return {
      ...message,
      content: message.content.map((part) => {
        if (part.type === 'file') return { ...part, data: valueOf(part.data) }
        if (part.type !== 'tool-result' || part.output.type !== 'content') return part
        const value = part.output.value.map((each) => (each.type === 'file' ? imageOf(each) : each))
        return { ...part, output: { ...part.output, value } }
      }),
    }
  })
}

/** Our prompts contain files as base64 text or by URL. */
function valueOf(data: FileData): unknown {
  if (data.type === 'url') return data.url
  return data.type === 'data' ? data.data : data
}

function imageOfV3({ data, mediaType }: FilePart): unknown {
  if (data.type === 'url') return { type: 'image-url', url: data.url.toString() }
  return { type: 'image-data', data: valueOf(data), mediaType }
}

/** The specification has no images by URL. */
function imageOfV2({ data, mediaType }: FilePart): unknown {
  if (data.type === 'url') return { type: 'text', text: `[An image (${mediaType}) at ${data.url.toString()}]` }
  return { type: 'media', data: valueOf(data), mediaType }
}

function partOfV2(part: LanguageModelV2StreamPart, provider: string): LanguageModelV4StreamPart {
  if (part.type !== 'finish') return part as LanguageModelV4StreamPart
  const unified = part.finishReason === 'unknown' ? 'other' : part.finishReason
  return {
    type: 'finish',
    finishReason: { unified, raw: undefined },
    usage: usageOfV2(part, provider),
    ...(part.providerMetadata && { providerMetadata: part.providerMetadata }),
  }
}

function usageOfV2(finish: LanguageModelV2StreamPart & { type: 'finish' }, provider: string): LanguageModelV4Usage {
  const { inputTokens: input, outputTokens, cachedInputTokens: cacheRead, reasoningTokens } = finish.usage
  const { anthropic, bedrock } = finish.providerMetadata ?? {}
  const cacheWrite =
    numberIn(anthropic?.['cacheCreationInputTokens']) ??
    numberIn((bedrock?.['usage'] as Record<string, unknown> | undefined)?.['cacheWriteInputTokens'])
  // These two exclude cached tokens from the input; all others include them.
  const excludesCache = input !== undefined && /anthropic|bedrock/.test(provider)
  return {
    inputTokens: {
      total: excludesCache ? input + (cacheRead ?? 0) + (cacheWrite ?? 0) : input,
      noCache: undefined,
      cacheRead,
      cacheWrite,
    },
    outputTokens: { total: outputTokens, text: undefined, reasoning: reasoningTokens },
  }
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
