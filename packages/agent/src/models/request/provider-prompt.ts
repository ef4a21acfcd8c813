import type { LanguageModelV4Message, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { Content, Message } from '@tapetree/session'
import { withAcceptedCallIds } from './call-ids.ts'
import { dedupeToolOutput } from './dedupe-tool-output.ts'
import { imagePart } from './image-part.ts'
import type { ModelRequest, ProviderMetadata } from '../model.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { putSignature } from '../reasoning-signature.ts'
import { assistantMessage } from '../returned-reasoning.ts'
import { toolResultOutput, type ResultRules } from './tool-result-output.ts'
import { tellBranch, tellCommand, tellCompaction } from './user-words.ts'

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
