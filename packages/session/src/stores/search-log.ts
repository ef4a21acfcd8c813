import { isObject } from '../util/json.ts'
import type { ReadableLog } from '../log/log-store.ts'
import { textOfLine } from '../line/message-text.ts'
import { replay } from '../log/replay.ts'
import { SessionState } from '../state/session-state.ts'
import { msOf, rangesOf, type NewestHits } from './search-hits.ts'

/** Searches one log by reading it: every word must occur, in any case. */
export async function searchLog(
  log: ReadableLog,
  { text, sessionId, hits }: { text: string; sessionId: string; hits: NewestHits },
): Promise<void> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const [first] = words
  if (first === undefined) return
  await replay(log, new SessionState({ isWhole: true }), {
    from: 0,
    watch: ({ line, seq }) => {
      const { timestamp = '' } = line
      const message = line['message']
      const role = isObject(message) ? String(message['role']) : line.type
      if (!hits.wants({ ms: msOf(timestamp), sessionId, seq }) || !hits.wantsRole(role)) return
      const searched = textOfLine(line)
      const lower = searched.toLowerCase()
      if (!words.every((word) => lower.includes(word))) return
      const snippet = snippetOf(searched, lower.indexOf(first))
      const matches = rangesOf(snippet, words, (each) => each.toLowerCase())
      hits.add({ sessionId, entryId: line.id, seq, timestamp, role, snippet, matches })
    },
  })
}

/** Text around an index, on one line. */
export function snippetOf(text: string, at: number): string {
  const start = Math.max(0, at - snippetBefore)
  const part = text
    .slice(start, at + snippetAfter)
    .toWellFormed()
    .replace(/\s+/g, ' ')
    .trim()
  return `${start > 0 ? '…' : ''}${part}${at + snippetAfter < text.length ? '…' : ''}`
}

const snippetBefore = 40
const snippetAfter = 120
