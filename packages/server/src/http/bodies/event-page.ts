import type { LogLine, Session } from '@tapetree/session'

export interface PageQuery {
  after?: number | undefined
  before?: number | undefined
  limit?: number | undefined
}

const defaultLimit = 500
/** A page ends behind this many bytes, but not before its first line. */
const maxPageBytes = 4 * 1024 * 1024

/** Lines byte for byte, oldest first: what follows a line, or the newest before one. */
export async function eventPage(
  session: Session,
  { after, before, limit = defaultLimit }: PageQuery,
): Promise<string[]> {
  if (before !== undefined && after === undefined) return linesBefore(session, before, limit)
  const lines: string[] = []
  let bytes = 0
  for await (const line of session.lines({ after: after ?? 0 })) {
    if (before !== undefined && line.seq >= before) break
    const text = textOf(line)
    bytes += text.length
    if (lines.length > 0 && bytes > maxPageBytes) break
    lines.push(text)
    if (lines.length === limit) break
  }
  return lines
}

export function textOf(line: LogLine): string {
  return line.type === 'line' ? line.text : JSON.stringify({ seq: line.seq, type: 'lost', count: line.count })
}

/** Each line has a number of its own, so the newest before one are those with the numbers before it. */
async function linesBefore(session: Session, before: number, limit: number): Promise<string[]> {
  const end = Math.min(before, session.head.seq + 1)
  const lines: string[] = []
  let bytes = 0
  for await (const line of session.lines({ after: Math.max(0, end - 1 - limit) })) {
    if (line.seq >= end) break
    const text = textOf(line)
    bytes += text.length
    lines.push(text)
    // Of too many bytes the newest are wanted.
    while (bytes > maxPageBytes && lines.length > 1) bytes -= lines.shift()?.length ?? 0
  }
  return lines
}
