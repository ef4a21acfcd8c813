import { isObject } from '../util/json.ts'
import type { ReadableLog } from '../log/log-store.ts'
import { textOfLine } from '../line/message-text.ts'
import { replay } from '../log/replay.ts'
import type { SearchHit, SearchQuery } from '../state/session-info.ts'
import { SessionState } from '../state/session-state.ts'

/** Searches one log by reading it: every word must occur, in any case. */
export async function searchLog(log: ReadableLog, query: { text: string; sessionId: string }): Promise<SearchHit[]> {
  const words = query.text.toLowerCase().split(/\s+/).filter(Boolean)
  const hits: SearchHit[] = []
  const [first] = words
  if (first === undefined) return hits
  await replay(log, new SessionState({ isWhole: true }), {
    from: 0,
    watch: ({ line, seq }) => {
      const text = textOfLine(line)
      const lower = text.toLowerCase()
      if (!words.every((word) => lower.includes(word))) return
      const message = line['message']
      hits.push({
        sessionId: query.sessionId,
        entryId: line.id,
        seq,
        timestamp: line.timestamp ?? '',
        role: isObject(message) ? String(message['role']) : line.type,
        snippet: snippetOf(text, lower.indexOf(first)),
      })
    },
  })
  return hits
}

/** The newest hits, at most as many as requested. */
export function newestHits(hits: readonly SearchHit[], query: SearchQuery): SearchHit[] {
  return hits
    .toSorted((left, right) => right.timestamp.localeCompare(left.timestamp))
    .slice(0, query.limit ?? defaultLimit)
}

const defaultLimit = 50

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
