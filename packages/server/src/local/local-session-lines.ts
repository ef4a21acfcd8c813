import type { EventPage } from '@tapetree/client'
import type { DiskLine, Session } from '@tapetree/session'

const pageLines = 200

/** The lines before one, oldest first, as a server returns them. Each line has its own number. */
export async function linesBefore(session: Session, before: number): Promise<EventPage> {
  const events: EventPage['events'] = []
  for await (const line of session.lines({ after: Math.max(0, before - 1 - pageLines) })) {
    if (line.seq >= before) break
    if (line.type === 'line') events.push(eventOf(line.text, line.seq))
    else events.push({ seq: line.seq, type: line.type, count: line.count })
  }
  return { events, head: session.head }
}

/** One line that is too long for a frame. */
export async function lineAt(session: Session, seq: number): Promise<DiskLine> {
  for await (const line of session.lines({ after: seq - 1 })) {
    if (line.seq === seq && line.type === 'line') return eventOf(line.text, seq) as unknown as DiskLine
    break
  }
  throw new Error(`Line ${seq} of session ${session.id} cannot be read.`)
}

function eventOf(text: string, seq: number): EventPage['events'][number] {
  return { ...(JSON.parse(text) as { type: string }), seq }
}
