import { fromDisk, type DiskLine, type Line } from '@tapetree/session'
import type { EventPage } from './protocol/rest.ts'

export interface OlderEntries {
  /** Lines of the path, oldest first. */
  lines: Line[]
  hasOlder: boolean
}

/** Walks up the path from an entry, page by page. Pages are requested by the seq of the line after them. */
export async function readOlder(
  from: { seq: number; parentId: string },
  count: number,
  pageBefore: (seq: number) => Promise<EventPage>,
): Promise<OlderEntries> {
  const lines: Line[] = []
  let wanted: string | null = from.parentId
  let { seq } = from
  while (wanted !== null && seq > 1) {
    const { events } = await pageBefore(seq)
    for (const event of events.toReversed()) {
      if (event['id'] !== wanted) continue
      const line = fromDisk(event as unknown as DiskLine, event.seq)
      if (!('parentId' in line)) continue
      lines.unshift(line)
      wanted = line.parentId
      if (lines.length >= count && !isResult(line)) return { lines, hasOlder: wanted !== null }
    }
    const [first] = events
    if (!first || first.seq >= seq) break
    seq = first.seq
  }
  return { lines, hasOlder: false }
}

/** Results are shown with their call. */
export function isResult(line: Line): boolean {
  return line.type === 'message' && line.message.role === 'tool'
}
