import type { JSONValue, LanguageModelV4Message, LanguageModelV4Prompt } from '@ai-sdk/provider'
import type { ProviderFacts } from './provider-facts.ts'
import type { ProviderMetadata } from './model.ts'

type AssistantMessage = LanguageModelV4Message & { role: 'assistant' }

interface MessageReader {
  facts: ProviderFacts
  modelId: string
}

/**
 * An assistant message with its reasoning where the host expects it. Chat Completions hosts differ in that, and some
 * reject a request that has it elsewhere.
 */
export function assistantMessage(content: AssistantMessage['content'], reader: MessageReader): AssistantMessage {
  const members = membersOf(content, reader)
  // Providers with native blocks reject trailing reasoning: an answer may have reached its limit while it was thinking.
  if (!members) return { role: 'assistant', content: content.slice(0, content.findLastIndex(isSaid) + 1) }
  return {
    role: 'assistant',
    content: content.filter(({ type }) => type !== 'reasoning'),
    // The package for Chat Completions copies these members into the message.
    ...(Object.keys(members).length > 0 && { providerOptions: { openaiCompatible: members } }),
  }
}

function isSaid({ type }: AssistantMessage['content'][number]): boolean {
  return type !== 'reasoning'
}

/** The members with the reasoning; undefined if the provider package writes it itself. */
function membersOf(
  content: AssistantMessage['content'],
  { facts, modelId }: MessageReader,
): Record<string, JSONValue> | undefined {
  const { reasoning: place = 'blocks', needsReasoning, namespace } = facts
  const text = content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
  const hasCalls = content.some(({ type }) => type === 'tool-call')
  const isNeeded = text !== '' || (needsReasoning === true && hasCalls)
  switch (place) {
    case 'blocks':
      return undefined
    case 'none':
      return {}
    case 'reasoning_content':
    case 'reasoning':
      return isNeeded ? { [place]: text } : {}
    case 'thinking-parts': {
      if (text === '') return {}
      const words = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
      const thinking = { type: 'thinking', thinking: [{ type: 'text', text }] }
      return { content: [thinking, ...(words === '' ? [] : [{ type: 'text', text: words }])] }
    }
    case 'reasoning_details': {
      const details = content.flatMap((part) => {
        const own = part.type === 'reasoning' ? part.providerOptions?.[namespace]?.['reasoningDetails'] : undefined
        return Array.isArray(own) ? own : []
      })
      if (details.length > 0) return { reasoning_details: details }
      const call = content.find((part) => part.type === 'tool-call')
      if (call && /gemini-[3-9]/.test(modelId)) return { reasoning_details: [unsignedCall(call.toolCallId)] }
      return isNeeded ? { reasoning: text } : {}
    }
    default:
      place satisfies never
      return undefined
  }
}

/**
 * Gemini 3 and later reject calls without a signature, except with this one, which Google documents for calls of other
 * models.
 */
function unsignedCall(id: string): JSONValue {
  return {
    type: 'reasoning.encrypted',
    data: 'skip_thought_signature_validator',
    id,
    format: 'google-gemini-v1',
    index: 0,
  }
}

/**
 * Whether an unfinished turn has calls without the signed thinking before them: another model made them, or the answer
 * was aborted. A user message after the results begins a new turn.
 */
export function lacksThinking(prompt: LanguageModelV4Prompt): boolean {
  const blocks = blocksOf(prompt)
  return blocks.some(({ isAssistant, parts }, place) => {
    if (!isAssistant || !parts.some(({ type }) => type === 'tool-call')) return false
    const isOver = blocks.slice(place + 2).some((later) => !later.isAssistant && later.parts.some(isFromUser))
    return !isOver && !isSigned(parts[0])
  })
}

type Part = Exclude<LanguageModelV4Message['content'], string>[number]

/** Adjacent messages of the same side are sent as one. */
function blocksOf(prompt: LanguageModelV4Prompt): { isAssistant: boolean; parts: Part[] }[] {
  const blocks: { isAssistant: boolean; parts: Part[] }[] = []
  for (const message of prompt) {
    if (message.role === 'system') continue
    const isAssistant = message.role === 'assistant'
    const last = blocks.at(-1)
    if (last?.isAssistant === isAssistant) last.parts.push(...message.content)
    else blocks.push({ isAssistant, parts: [...message.content] })
  }
  return blocks
}

function isFromUser({ type }: Part): boolean {
  return type !== 'tool-result'
}

function isSigned(part: Part | undefined): boolean {
  if (part?.type !== 'reasoning') return false
  // The key depends on the service through which Claude is used.
  return Object.values(part.providerOptions ?? {}).some(
    ({ signature, redactedData }) => signature !== undefined || redactedData !== undefined,
  )
}

interface SignedReasoning {
  signature?: string
  providerMetadata?: ProviderMetadata
}

type Place = Pick<ProviderFacts, 'namespace' | 'signatureKey'>

/** Removes the signature from the metadata: it can be long, and is kept once. */
export function takeSignature(metadata: ProviderMetadata, { namespace, signatureKey = '' }: Place): SignedReasoning {
  const { [namespace]: own, ...others } = metadata
  const { [signatureKey]: signature, ...rest } = asRecord(own)
  const providerMetadata = { ...others, ...(Object.keys(rest).length > 0 && { [namespace]: rest }) }
  return {
    ...(typeof signature === 'string' && { signature }),
    ...(Object.keys(providerMetadata).length > 0 && { providerMetadata }),
  }
}

export function putSignature({ signature, providerMetadata = {} }: SignedReasoning, place: Place): ProviderMetadata {
  const { namespace, signatureKey } = place
  if (signature === undefined || signatureKey === undefined) return providerMetadata
  return { ...providerMetadata, [namespace]: { ...asRecord(providerMetadata[namespace]), [signatureKey]: signature } }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
