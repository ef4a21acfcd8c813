import type { Transcript } from '@tapetree/session'

const searched = 200

/** Tokens of the last request and its answer, as the provider counted them: what the next one begins with. */
export function contextTokensOf({ path }: Transcript): number | undefined {
  const { items } = path
  for (let index = items.length - 1; index >= Math.max(0, items.length - searched); index--) {
    const item = items.at(index)
    // What was said before it is no longer sent.
    if (item?.type === 'compaction') return undefined
    if (item?.type !== 'assistant' || !item.usage) continue
    const { inputTokens = 0, outputTokens = 0, totalTokens } = item.usage
    return totalTokens ?? inputTokens + outputTokens
  }
  return undefined
}
