import type { TranscriptItem } from '@tapetree/session'

/** How many messages a compaction stands for, where all of them are there. */
export function summarisedBy(items: readonly TranscriptItem[], index: number): number | undefined {
  const item = items[index]
  if (item?.type !== 'compaction' || item.firstKeptEntryId === undefined) return undefined
  let place = index - 1
  while (place >= 0 && items[place]?.id !== item.firstKeptEntryId) place--
  if (place < 0) return undefined
  let messages = 0
  for (const before of items.slice(0, place).toReversed()) {
    if (before.type === 'compaction') break
    if (before.type === 'gap') return undefined
    if (before.type === 'user' || before.type === 'assistant' || before.type === 'bash') messages++
  }
  return messages
}
