import { SessionError, type Session } from '@tapetree/session'
import type { DiskLine } from '@tapetree/session/format'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

const minPrefixLength = 4

/** The id of the entry with this number, id, id prefix, or label. */
export async function findEntry(session: Session, reference: string): Promise<string> {
  if (await isEntry(session, reference)) return reference
  const labeled = [...session.getLabels()].filter(([, label]) => label === reference)
  const found = labeled.length > 0 ? labeled.map(([id]) => id) : await entriesMeant(session, reference)
  const [only, ...others] = found
  if (only === undefined) throw notFound(session.id, reference)
  if (others.length > 0) {
    throw new Failure(exitCodes.usage, `${shown(reference)} matches ${found.length} entries of this session.`, {
      type: 'entry-ambiguous',
      why: 'Ids of entries from the same moment begin alike.',
      next: [`tapetree sessions show ${session.id} --tree`],
    })
  }
  return only
}

async function isEntry(session: Session, id: string): Promise<boolean> {
  try {
    await session.getEntry(id)
    return true
  } catch (error) {
    if (error instanceof SessionError && (error.code === 'entry-not-found' || error.code === 'invalid-id')) return false
    throw error
  }
}

async function entriesMeant(session: Session, reference: string): Promise<string[]> {
  const seq = /^#?\d{1,9}$/.test(reference) ? Number(reference.replace('#', '')) : undefined
  const found: string[] = []
  for await (const stored of session.lines()) {
    if (stored.type === 'lost') continue
    if (stored.seq !== seq && !(reference.length >= minPrefixLength && stored.text.includes(reference))) continue
    const line = JSON.parse(stored.text) as DiskLine
    if (line.parent_id === undefined) continue
    if (stored.seq === seq) return [line.id]
    if (line.id.startsWith(reference)) found.push(line.id)
  }
  return found
}

function notFound(sessionId: string, reference: string): Failure {
  return new Failure(exitCodes.notFound, `There is no entry ${shown(reference)} in session ${sessionId}.`, {
    type: 'entry-not-found',
    next: [`tapetree sessions show ${sessionId} --tree`],
  })
}

function shown(reference: string): string {
  return JSON.stringify(harmlessLine(reference))
}
