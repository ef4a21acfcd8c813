import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt, SharedV4ProviderOptions } from '@ai-sdk/provider'

const anthropicMarker: SharedV4ProviderOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }

/**
 * Marks the ends of the prefixes that a provider should cache: the system prompt, the last message, and the last
 * message before the newest answer. The previous request ended there, so its cache entry is found again, however many
 * blocks the answer has. With the last tool these are the four markers that Anthropic allows.
 */
export function markPrompt(prompt: LanguageModelV4Prompt, marker = anthropicMarker): LanguageModelV4Prompt {
  const answer = prompt.findLastIndex(({ role }) => role === 'assistant')
  const before = prompt.findLastIndex(({ role }, index) => index < answer && role !== 'assistant' && role !== 'system')
  const places = new Set([prompt.findLastIndex(({ role }) => role === 'system'), before, prompt.length - 1])
  return prompt.map((message, index) => (places.has(index) ? { ...message, providerOptions: marker } : message))
}

export function markTools(
  tools: readonly LanguageModelV4FunctionTool[],
  marker = anthropicMarker,
): LanguageModelV4FunctionTool[] {
  return tools.map((tool, index) => (index === tools.length - 1 ? { ...tool, providerOptions: marker } : tool))
}
