import type { JSONValue, LanguageModelV4Message } from '@ai-sdk/provider'
import type { ProviderFacts } from './provider-facts.ts'

type AssistantMessage = LanguageModelV4Message & { role: 'assistant' }

/**
 * An assistant message with its reasoning in the place where the host wants it back. Hosts of Chat Completions disagree about that
 * place, and some refuse a request that uses another one.
 */
export function assistantMessage(content: AssistantMessage['content'], facts: ProviderFacts): AssistantMessage {
  const members = membersOf(content, facts)
  if (!members) return { role: 'assistant', content }
  return {
    role: 'assistant',
    content: content.filter(({ type }) => type !== 'reasoning'),
    // The package for Chat Completions copies these members into the message.
    ...(Object.keys(members).length > 0 && { providerOptions: { openaiCompatible: members } }),
  }
}

/** The members that stand for the reasoning; undefined if the provider package writes it by itself. */
function membersOf(
  content: AssistantMessage['content'],
  { reasoning: place = 'blocks', needsReasoning, namespace }: ProviderFacts,
): Record<string, JSONValue> | undefined {
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
      return isNeeded ? { reasoning: text } : {}
    }
    default:
      place satisfies never
      return undefined
  }
}
