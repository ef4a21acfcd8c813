import { SessionError, type Cause, type Session } from '@tapetree/session'
import type { Entry, RequestReference } from '@tapetree/session/format'
import type { Model } from '../models/model.ts'
import { speakingCompaction } from './context-size.ts'
import { conversationText } from './conversation-text.ts'
import { promptFile } from '../prompt/prompt-file.ts'
import { summarizeInParts } from './summarize-in-parts.ts'
import { joinSummary, splitSummary } from './summary-text.ts'
import { filesTouchedIn, noFiles } from './touched-files.ts'

export interface BranchSummaryInput {
  session: Session
  model: Model
  /** The entry to continue from; null is before the first entry. */
  targetId: string | null
  /** What the summary must cover. */
  instructions?: string | undefined
  signal: AbortSignal
  cause?: Cause
}

export type BranchSummaryOutcome =
  | { type: 'summarized'; entryId: string; summary: string }
  /** Nothing with content is abandoned, so there is no summary; the leaf was moved. */
  | { type: 'branched' }
  /** The leaf was moved by another writer during the summary; it stays there. */
  | { type: 'superseded' }

/** Moves the leaf and appends a summary of the abandoned branch there. */
export async function summarizeBranch(input: BranchSummaryInput): Promise<BranchSummaryOutcome> {
  const { session, targetId } = input
  refuseWhileRunning(session)
  const { leafId } = session
  const summary = await summarizeEntries(await abandonedEntries(session, targetId), input)
  input.signal.throwIfAborted()
  if (session.leafId !== leafId) return { type: 'superseded' }
  if (!summary) {
    await session.branch(targetId, input.cause && { cause: input.cause })
    return { type: 'branched' }
  }
  const { text, request } = summary
  const context = { ...(request && { request }), ...(input.cause && { cause: input.cause }) }
  const entryId = await session.branchWithSummary(targetId, text, context)
  return { type: 'summarized', entryId, summary: text }
}

/** The session would reject it too, but only after the summary was paid for. */
function refuseWhileRunning({ id, openRun }: Session): void {
  if (openRun) throw new SessionError('session-busy', `Session ${id} cannot branch while run ${openRun.runId} is open.`)
}

/**
 * The entries on the path to the leaf that are not on the path to the target, oldest first. Stops reading at the common
 * ancestor.
 */
export async function abandonedEntries(session: Session, targetId: string | null): Promise<Entry[]> {
  const left: Entry[] = []
  let here = session.leafId === null ? null : await session.getEntry(session.leafId)
  let there = targetId === null ? null : await session.getEntry(targetId)
  while (here && here.id !== there?.id) {
    // The entry with the higher seq cannot be an ancestor of the other.
    if (there && there.seq > here.seq) {
      there = await parentOf(session, there)
    } else {
      left.push(here)
      here = await parentOf(session, here)
    }
  }
  return left.reverse()
}

/** In a damaged log an id may occur twice, so that an entry seems to be its own ancestor. */
async function parentOf(session: Session, { parentId, seq }: Entry): Promise<Entry | null> {
  const parent = parentId === null ? null : await session.getEntry(parentId)
  return parent && parent.seq < seq ? parent : null
}

interface Told {
  text: string
  /** Absent if no call was needed. */
  request?: RequestReference
}

async function summarizeEntries(entries: readonly Entry[], input: BranchSummaryInput): Promise<Told | undefined> {
  const { previous, since } = fromCompaction(entries)
  const pieces = conversationText(since)
  const files = filesTouchedIn(entries)
  if (pieces.length === 0) {
    return previous === '' ? undefined : { text: joinSummary({ history: previous, unfinished: '', files }) }
  }
  const { leafId } = input.session
  const system = promptFile('branch-summary')
  const told = await summarizeInParts({ ...input, purpose: 'branch_summary', system, pieces, previous, leafId })
  return { text: joinSummary({ history: told.text, unfinished: '', files }), request: told.request }
}

/** Entries that a compaction on the branch has summarized need no second summary. */
function fromCompaction(entries: readonly Entry[]): { previous: string; since: readonly Entry[] } {
  const compaction = speakingCompaction(entries)?.compaction
  if (!compaction) return { previous: '', since: entries }
  const firstKept = entries.findIndex(({ id }) => id === compaction.firstKeptEntryId)
  return {
    previous: joinSummary({ ...splitSummary(compaction.summary), files: noFiles }),
    since: entries.slice(Math.max(0, firstKept)),
  }
}
