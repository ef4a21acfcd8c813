import type {
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
  LanguageModelV4ToolResultOutput,
} from '@ai-sdk/provider'
import type { Content, Message, BashExecution, ToolResult } from '@tapetree/session'
import { withAcceptedCallIds } from './call-ids.ts'
import { dedupeToolOutput } from './dedupe-tool-output.ts'
import { imagePart, note, type ImagePart, type ImageRules } from './image-part.ts'
import type { ModelRequest, ProviderMetadata } from '../model.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { putSignature } from '../reasoning-signature.ts'
import { assistantMessage } from '../returned-reasoning.ts'

/** The model that is asked. */
export interface PromptReader {
  provider: string
  modelId: string
  facts: ProviderFacts
  hasImages: boolean
}

/** Our messages as the provider packages take them. What stands for a message depends on it and on those before it only. */
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
  /** The names of the tools that were called, by call. */
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
    // Reasoning alone is no answer.
    if (content.some(({ type }) => type !== 'reasoning')) this.prompt.push(assistantMessage(content, this.#reader))
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

  /** Results that stand side by side answer one message, and go out as one. */
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

/** What a provider keeps with its content goes back to the model that made it, and to no other. */
function ownOptions(isOwn: boolean, metadata: ProviderMetadata = {}): { providerOptions?: SharedV4ProviderOptions } {
  return isOwn && Object.keys(metadata).length > 0 ? { providerOptions: metadata as SharedV4ProviderOptions } : {}
}

function wordsOf({ content }: Message): string {
  return content.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

/** Some providers refuse a text of nothing but white space. */
function isBlank(text: string): boolean {
  return text.trim() === ''
}

/** A command that the user ran, as the user would tell it. */
function tellCommand({ command, output, exitCode, cancelled, truncated }: BashExecution): string {
  const ending = cancelled
    ? 'It was cancelled.'
    : exitCode === undefined
      ? 'Its exit code is not known.'
      : `Exit code ${exitCode}.`
  const shown = output.trim() === '' ? ['It printed nothing.'] : ['Output:', '```', output, '```']
  return [
    'I ran this command:',
    '```',
    command,
    '```',
    ...shown,
    ending,
    ...(truncated ? ['The output is not shown whole.'] : []),
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

/** What a tool gave, in the form that the provider understands. */
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
      if (rules.facts.resultImages === 'never') return [note(source, 'a tool cannot show images to this model')]
      return [imagePart(source, rules)]
    })
    .filter((piece) => piece !== '')
}

/** Some providers refuse an empty result, and some one without words. */
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
