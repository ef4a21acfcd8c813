import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider'
import {
  text,
  type Content,
  type Message,
  type BashExecution,
  type ToolResult,
  type ImageSource,
} from '@tapetree/session'
import { withAcceptedCallIds } from './call-ids.ts'
import type { ModelRequest, ProviderMetadata } from '../model.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { putSignature, assistantMessage } from '../returned-reasoning.ts'

/** The model that gets the request. */
export interface PromptReader {
  provider: string
  modelId: string
  facts: ProviderFacts
  hasImages: boolean
}

/**
 * Converts our messages for the provider packages. The result for a message depends only on it and on earlier messages.
 */
export function toPrompt(
  request: Pick<ModelRequest, 'system' | 'messages'>,
  reader: PromptReader,
): LanguageModelV4Prompt {
  const messages = dedupeToolOutput(withAcceptedCallIds(request.messages, reader.facts.callIds))
  const writer = new PromptWriter(reader)
  for (const message of messages) writer.add(message)
  return request.system === '' ? writer.prompt : [{ role: 'system', content: request.system }, ...writer.prompt]
}

type UserContent = (LanguageModelV4Message & { role: 'user' })['content']
type AssistantContent = (LanguageModelV4Message & { role: 'assistant' })['content']
type ToolContent = (LanguageModelV4Message & { role: 'tool' })['content']

class PromptWriter {
  readonly prompt: LanguageModelV4Prompt = []
  readonly #reader: PromptReader
  readonly #rules: ResultRules
  /** The names of the called tools, by call. */
  readonly #toolNames = new Map<string, string>()

  constructor(reader: PromptReader) {
    this.#reader = reader
    this.#rules = { facts: reader.facts, hasImages: reader.hasImages, fetchesImages: reader.facts.fetchesImages }
  }

  add(message: Message): void {
    switch (message.role) {
      case 'assistant':
        return this.#addAssistant(message)
      case 'tool':
        return this.#addResults(message)
      case 'bashExecution':
        if (!message.bashExecution) return this.#addUser(this.#userContent(message.content))
        return this.#addUser([{ type: 'text', text: tellCommand(message.bashExecution) }])
      case 'compactionSummary':
        return this.#addUser([{ type: 'text', text: tellCompaction(wordsOf(message)) }])
      case 'branchSummary':
        return this.#addUser([{ type: 'text', text: tellBranch(wordsOf(message)) }])
      case 'user':
      case 'custom':
        return this.#addUser(this.#userContent(message.content))
      default:
        message.role satisfies never
        return this.#addUser(this.#userContent(message.content))
    }
  }

  #addUser(content: UserContent): void {
    if (content.length === 0) return
    const { facts, modelId } = this.#reader
    if (this.prompt.at(-1)?.role === 'tool' && facts.needsAnswerAfterResults?.(modelId))
      this.prompt.push({ role: 'assistant', content: [{ type: 'text', text: 'I have read the results.' }] })
    this.prompt.push({ role: 'user', content })
  }

  #userContent(blocks: readonly Content[]): UserContent {
    return blocks.flatMap((block): UserContent => {
      if (block.type === 'text') return isBlank(block.text.content) ? [] : [{ type: 'text', text: block.text.content }]
      if (block.type !== 'image') return []
      const part = imagePart(block.image.source, this.#rules)
      return [typeof part === 'string' ? { type: 'text', text: part } : part]
    })
  }

  #addAssistant(message: Message): void {
    const isOwn = message.provider === this.#reader.provider && message.model === this.#reader.modelId
    const content = message.content.flatMap((block) => this.#assistantPart(block, { message, isOwn }))
    // Reasoning alone is not an answer.
    if (content.every(({ type }) => type === 'reasoning')) return
    const answer = assistantMessage(content, this.#reader)
    const last = this.prompt.at(-1)
    // An answer in several messages: it was paused, or imported.
    if (this.#reader.facts.joinsAnswers && last?.role === 'assistant') last.content.push(...answer.content)
    else this.prompt.push(answer)
  }

  #assistantPart(block: Content, { message, isOwn }: { message: Message; isOwn: boolean }): AssistantContent {
    switch (block.type) {
      case 'text': {
        const { content, providerMetadata } = block.text
        return isBlank(content) ? [] : [{ type: 'text', text: content, ...ownOptions(isOwn, providerMetadata) }]
      }
      case 'tool_use': {
        const { id, name, input, providerMetadata } = block.toolUse
        this.#toolNames.set(id, name)
        return [{ type: 'tool-call', toolCallId: id, toolName: name, input, ...ownOptions(isOwn, providerMetadata) }]
      }
      case 'reasoning': {
        if (!isOwn || message.stopReason === 'aborted') return []
        const signed = putSignature(block.reasoning, this.#reader.facts)
        return [{ type: 'reasoning', text: block.reasoning.text, ...ownOptions(isOwn, signed) }]
      }
      case 'image':
      case 'tool_result':
        return []
      default:
        block satisfies never
        return []
    }
  }

  /** Adjacent results answer one message, and are sent as one. */
  #addResults(message: Message): void {
    const content = message.content.flatMap((block): ToolContent => {
      if (block.type !== 'tool_result') return []
      const { toolUseId } = block.toolResult
      const toolName = this.#toolNames.get(toolUseId) ?? 'unknown'
      const output = toolResultOutput(block.toolResult, this.#rules)
      return [{ type: 'tool-result', toolCallId: toolUseId, toolName, output }]
    })
    const last = this.prompt.at(-1)
    if (last?.role === 'tool') last.content.push(...content)
    else if (content.length > 0) this.prompt.push({ role: 'tool', content })
  }
}

/** Provider metadata is sent back only to the model that made it. */
function ownOptions(isOwn: boolean, metadata: ProviderMetadata = {}): { providerOptions?: SharedV4ProviderOptions } {
  return isOwn && Object.keys(metadata).length > 0 ? { providerOptions: metadata as SharedV4ProviderOptions } : {}
}

function wordsOf({ content }: Message): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

/** Some providers reject a blank text. */
function isBlank(text: string): boolean {
  return text.trim() === ''
}

/** A command that the user ran, in the words of the user. */
function tellCommand({ command, output, exitCode, cancelled, truncated }: BashExecution): string {
  const ending = cancelled
    ? 'It was cancelled.'
    : exitCode === undefined
      ? 'Its exit code is unknown.'
      : `Exit code ${exitCode}.`
  const shown = output.trim() === '' ? ['It printed nothing.'] : ['Output:', '```', output, '```']
  return [
    'I ran this command:',
    '```',
    command,
    '```',
    ...shown,
    ending,
    ...(truncated ? ['The output is truncated.'] : []),
  ].join('\n')
}

function tellCompaction(summary: string): string {
  return `The conversation up to here was replaced by this summary of it:\n\n<summary>\n${summary}\n</summary>`
}

function tellBranch(summary: string): string {
  return `The conversation went another way for a while and then came back to this point. A summary of that way:\n\n<summary>\n${summary}\n</summary>`
}

interface ResultRules extends ImageRules {
  facts: ProviderFacts
}

/** The result of a tool, in the form that the provider supports. */
function toolResultOutput(result: ToolResult, rules: ResultRules): LanguageModelV4ToolResultOutput {
  const pieces = piecesOf(result, rules)
  const words = pieces.filter((piece) => typeof piece === 'string').join('\n') || noWords(pieces)
  const isFailure = result.isError === true && rules.facts.marksFailedResults
  if (pieces.every((piece) => typeof piece === 'string'))
    return { type: isFailure ? 'error-text' : 'text', value: words }
  const ordered = rules.facts.resultImages === 'after-text' ? [words, ...pieces.filter(isImage)] : pieces
  return { type: 'content', value: ordered.map(asContent) }
}

function piecesOf({ content }: ToolResult, rules: ResultRules): (string | ImagePart)[] {
  const blocks = typeof content === 'string' ? [content] : content
  return blocks
    .flatMap((block) => {
      if (typeof block === 'string') return [block]
      if (block.type === 'text') return [block.text.content]
      if (block.type !== 'image') return []
      const { source } = block.image
      if (rules.facts.resultImages === 'never')
        return [imageNote(source, 'the model does not support images in tool results')]
      return [imagePart(source, rules)]
    })
    .filter((piece) => piece !== '')
}

/** Some providers reject an empty result, and some a result without text. */
function noWords(pieces: readonly unknown[]): string {
  return pieces.length === 0 ? '(no output)' : '(an image)'
}

function isImage(piece: string | ImagePart): piece is ImagePart {
  return typeof piece !== 'string'
}

type ContentPart = (LanguageModelV4ToolResultOutput & { type: 'content' })['value'][number]

function asContent(piece: string | ImagePart): ContentPart {
  return typeof piece === 'string' ? { type: 'text', text: piece } : piece
}

type ImagePart = Extract<(LanguageModelV4Prompt[number] & { role: 'user' })['content'][number], { type: 'file' }>

interface ImageRules {
  hasImages: boolean
  fetchesImages: boolean
}

/** An image as it is sent, or a note instead of it. */
function imagePart(source: ImageSource, rules: ImageRules): ImagePart | string {
  if (!rules.hasImages) return imageNote(source, 'the model does not support images')
  switch (source.type) {
    case 'base64':
      return filePart(source.mediaType, { type: 'data', data: source.data })
    case 'url':
      return remoteImage(source, rules)
    case 'blob':
      return imageNote(source, 'its bytes are not available')
    default:
      source satisfies never
      return ''
  }
}

function imageNote(source: ImageSource, why: string): string {
  return `[An image (${source.mediaType}) was left out: ${why}.]`
}

function remoteImage(source: ImageSource & { type: 'url' }, rules: ImageRules): ImagePart | string {
  const inline = /^data:([^;,]+);base64,([^]+)$/.exec(source.data)
  if (inline?.[1] && inline[2]) return filePart(inline[1], { type: 'data', data: inline[2] })
  const url = URL.canParse(source.data) ? new URL(source.data) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) return imageNote(source, 'its URL is not usable')
  if (!rules.fetchesImages) return imageNote(source, `it is at ${source.data}`)
  return filePart(source.mediaType, { type: 'url', url })
}

function filePart(mediaType: string, data: ImagePart['data']): ImagePart {
  return { type: 'file', mediaType, data }
}

/** For shorter output, the note would not be worth its tokens. */
const shortestChars = 1024

/**
 * Long output that was sent before is not sent again: a note that names the call with that output replaces it. The
 * first one stays and the later ones are replaced, although the last would be more useful to the model: everything that
 * was sent must stay unchanged, or the provider's cache of what follows is lost.
 */
export function dedupeToolOutput(messages: readonly Message[]): Message[] {
  /** Outputs, and the call that had each first. */
  const seen = new Map<string, string>()
  return messages.map((message) => {
    const content = message.content.map((block) => {
      if (block.type !== 'tool_result') return block
      const toolResult = dedupe(block.toolResult, seen)
      return toolResult === block.toolResult ? block : { ...block, toolResult }
    })
    return content.some((block, index) => block !== message.content[index]) ? { ...message, content } : message
  })
}

function dedupe(result: ToolResult, seen: Map<string, string>): ToolResult {
  const { content, toolUseId } = result
  if (typeof content === 'string') {
    const first = firstWith(content, toolUseId, seen)
    return first === undefined ? result : { ...result, content: earlierCallNote(first) }
  }
  const blocks = content.map((block) => {
    const output = outputOf(block)
    const first = output === undefined ? undefined : firstWith(output, toolUseId, seen)
    return first === undefined ? block : text(earlierCallNote(first))
  })
  return blocks.some((block, index) => block !== content[index]) ? { ...result, content: blocks } : result
}

function firstWith(output: string, callId: string, seen: Map<string, string>): string | undefined {
  if (output.length < shortestChars) return undefined
  const first = seen.get(output)
  if (first === undefined) seen.set(output, callId)
  return first
}

function outputOf(block: Content): string | undefined {
  if (block.type === 'text') return block.text.content
  return block.type === 'image' && block.image.source.type === 'base64' ? block.image.source.data : undefined
}

function earlierCallNote(callId: string): string {
  return `[The same output as that of call ${callId} above; it is not repeated.]`
}
