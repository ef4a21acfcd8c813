import type { Session } from '@tapetree/session'
import type { Entry, RequestReference } from '@tapetree/session/format'
import type { Model } from '../models/model.ts'
import { entryTokens, speakingCompaction } from './context-size.ts'
import { conversationText } from './conversation-text.ts'
import { promptFile } from '../prompt/prompt-file.ts'
import { summarizeInParts } from './summarize-in-parts.ts'
import { joinSummary, splitSummary, type SummaryParts } from './summary-text.ts'
import { filesTouchedIn, noFiles } from './touched-files.ts'

export interface CutToSummarize {
  session: Session
  model: Model
  path: readonly Entry[]
  /** The first entry that is kept. */
  cutIndex: number
  instructions?: string | undefined
  leafId: string | null
  signal: AbortSignal
}

export interface CutSummary {
  text: string
  /** The last model call for it. */
  request: RequestReference
}

/**
 * Summarizes the entries before the cut, together with the previous summary. Undefined if there is nothing to
 * summarize. If the cut is inside the work on a request, the beginning of that work gets its own section.
 */
export async function summarizeCut(cut: CutToSummarize): Promise<CutSummary | undefined> {
  const { path, cutIndex } = cut
  const cutOff = path.slice(0, cutIndex)
  const before = splitSummary(speakingCompaction(path)?.compaction.summary ?? '')
  const { history, unfinished } = await tellCut(cutOff, before, cut)
  const request = unfinished.request ?? history.request
  if (!request) return undefined
  const files = filesTouchedIn(cutOff, before.files)
  return { text: joinSummary({ history: history.text, unfinished: unfinished.text, files }), request }
}

interface Told {
  text: string
  /** Absent if no call was needed. */
  request?: RequestReference
}

async function tellCut(
  cutOff: readonly Entry[],
  before: SummaryParts,
  cut: CutToSummarize,
): Promise<{ history: Told; unfinished: Told }> {
  const begun = unfinishedFrom(cut.path, cut.cutIndex)
  if (begun === -1) {
    return { history: { text: before.history }, unfinished: await tellUnfinished(cutOff, before.unfinished, cut) }
  }
  const textBefore = joinSummary({ ...before, files: noFiles })
  const history = await tellHistory(cutOff.slice(0, begun), textBefore, cut)
  const unfinished = begun === undefined ? { text: '' } : await tellUnfinished(cutOff.slice(begun), '', cut)
  return { history, unfinished }
}

/**
 * The start of the work that continues after the cut: the index of its request, -1 if that is before the path (an
 * earlier compaction cut the same work), undefined if the cut is between two requests.
 */
function unfinishedFrom(path: readonly Entry[], cutIndex: number): number | undefined {
  const cutOff = path.slice(0, cutIndex)
  const next = path.slice(cutIndex).find(speaks)
  if ((next && isRequest(next)) || isSettled(cutOff.findLast(speaks))) return undefined
  return cutOff.findLastIndex(isRequest)
}

function tellHistory(entries: readonly Entry[], previous: string, cut: CutToSummarize): Promise<Told> {
  return tell(entries, { ...cut, system: promptFile('compaction'), previous })
}

function tellUnfinished(entries: readonly Entry[], previous: string, cut: CutToSummarize): Promise<Told> {
  return tell(entries, { ...cut, system: promptFile('compaction-unfinished'), previous })
}

async function tell(
  entries: readonly Entry[],
  request: CutToSummarize & { system: string; previous: string },
): Promise<Told> {
  const pieces = conversationText(entries)
  if (pieces.length === 0) return { text: request.previous }
  return summarizeInParts({ ...request, purpose: 'compaction', pieces })
}

function speaks(entry: Entry): boolean {
  return entry.type !== 'compaction' && entryTokens(entry) > 0
}

function isRequest(entry: Entry): boolean {
  return entry.type === 'message' && entry.message.role === 'user'
}

/** The last message is an answer of the model without calls. */
function isSettled(entry: Entry | undefined): boolean {
  if (entry?.type !== 'message' || entry.message.role !== 'assistant') return false
  return !entry.message.content.some((block) => block.type === 'tool_use')
}
