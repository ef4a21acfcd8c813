import { fromDisk, type DiskLine, type MessageEntry, type RequestReference, type Session } from '@tapetree/session'

/** Which moment a context is of. */
export interface ContextSource {
  /** The entry that the context ends with; null is before the first one. */
  leafId: string | null
  /** The answer whose request this is, where it was sent. */
  answer?: MessageEntry & { request: RequestReference }
}

/** At an answer it is what the answer was made from; anywhere else what would be sent next. */
export async function contextSourceOf(session: Session, at: string | undefined): Promise<ContextSource> {
  if (at !== undefined) {
    const entry = await session.getEntry(at)
    if (isAnswer(entry)) return { leafId: entry.request.leafId, answer: entry }
  }
  const leafId = at ?? session.leafId
  const answer = await answerFrom(session, leafId)
  return answer ? { leafId, answer } : { leafId }
}

/** The first answer that was asked for from there. */
async function answerFrom(session: Session, leafId: string | null): Promise<ContextSource['answer']> {
  for await (const stored of session.lines()) {
    if (stored.type === 'lost' || !stored.text.includes('"request"')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (isAnswer(line) && line.request.leafId === leafId) return line
  }
  return undefined
}

function isAnswer(line: { type: string; request?: RequestReference }): line is NonNullable<ContextSource['answer']> {
  return line.type === 'message' && typeof line.request?.sha256 === 'string'
}
