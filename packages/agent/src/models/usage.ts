import type { LanguageModelV4Usage } from '@ai-sdk/provider'
import type { Usage } from '@tapetree/session'

/** `inputTokens` counts all that was read, from a cache or not; what was read from it or written to it is part of that. */
export function usageOf({ inputTokens: input, outputTokens: output }: LanguageModelV4Usage): Usage {
  const total =
    input.total === undefined && output.total === undefined ? undefined : (input.total ?? 0) + (output.total ?? 0)
  return {
    ...count('inputTokens', input.total),
    ...count('outputTokens', output.total),
    ...count('cacheReadTokens', input.cacheRead),
    ...count('cacheWriteTokens', input.cacheWrite),
    ...count('reasoningTokens', output.reasoning),
    ...count('totalTokens', total),
  }
}

function count(name: keyof Usage, value: number | undefined): Usage {
  return value === undefined ? {} : { [name]: value }
}
