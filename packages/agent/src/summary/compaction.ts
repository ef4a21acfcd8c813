import type { Cause, Session } from '@tapetree/session'
import type { Entry, RequestReference } from '@tapetree/session/format'
import { chooseCutPoint, findCutPoints, type CutPoint } from '@tapetree/session/view'
import type { Model, ModelLimits } from '../models/model.ts'
import { summarizeCut } from './compaction-summary.ts'
import {
  countedTokens,
  entryTokens,
  estimateContext,
  speakingCompaction,
  spokenTokens,
  systemInForce,
} from './context-size.ts'

export interface CompactionSettings {
  /** False: only on request. */
  isEnabled: boolean
  /** The part of the window that is reserved for the answer and for what a turn adds to the context. */
  reserveTokens: number
  /** About how much of the conversation is kept verbatim. */
  keepTokens: number
  /** The summary is begun so many tokens before the reserve is reached, while the run continues. Absent or 0: the run waits for it. */
  headStartTokens?: number
}

export const defaultCompaction: CompactionSettings = {
  isEnabled: true,
  reserveTokens: 16_384,
  keepTokens: 20_000,
  headStartTokens: 20_000,
}

/** The maximum share of a small window for the reserve, for the kept part, and for the head start. */
const maxShare = 0.25
/** A compaction that frees less is not worth another try. */
const worthwhileShare = 0.05

export type CompactionReason = 'threshold' | 'overflow' | 'manual'

export interface CompactionInput {
  session: Session
  model: Model
  /** The head of the run, which is the leaf. */
  headId: string | null
  settings: CompactionSettings
  reason: CompactionReason
  /** What the summary must cover. */
  instructions?: string | undefined
  signal: AbortSignal
  cause?: Cause
}

export type CompactionOutcome =
  | {
      type: 'compacted'
      entryId: string
      summary: string
      firstKeptId: string
      tokensBefore: number
      tokensAfter: number
      /** False: it freed so little that it need not be tried again. */
      isWorthwhile: boolean
    }
  /** No cut would free enough. No model call was made. */
  | { type: 'nothing-to-cut' }
  /** The summary is as long as what it replaces, and is discarded. */
  | { type: 'futile' }
  /** The leaf was moved, or another writer compacted, during the summary; it is discarded. */
  | { type: 'superseded' }

export function needsCompaction(context: {
  tokens: number
  limits: ModelLimits
  settings: CompactionSettings
}): boolean {
  const { tokens, limits, settings } = context
  return settings.isEnabled && tokens > limits.contextTokens - withinShare(settings.reserveTokens, limits)
}

/** Whether the summary should be made now, so that it is ready before the context is full. */
export function needsHeadStart(context: {
  tokens: number
  limits: ModelLimits
  settings: CompactionSettings
}): boolean {
  const { tokens, limits, settings } = context
  const { headStartTokens = 0, reserveTokens, isEnabled } = settings
  if (!isEnabled || headStartTokens === 0) return false
  return tokens > limits.contextTokens - withinShare(reserveTokens, limits) - withinShare(headStartTokens, limits)
}

/** A summary that is not in the log yet, and what it was made of. */
export interface PreparedCompaction {
  type: 'prepared'
  summary: string
  request: RequestReference
  firstKeptId: string
  headId: string | null
  /** The compaction in force. */
  previousId: string | undefined
  /** Tokens in the context at that time, and how many of them the summary frees. */
  tokens: number
  freedTokens: number
  isWorthwhile: boolean
}

/** Replaces the older part of the context by a summary. Nothing is removed: branching to before it undoes it. */
export async function compact(input: CompactionInput): Promise<CompactionOutcome> {
  const prepared = await prepareCompaction(input)
  return prepared.type === 'prepared' ? keepCompaction(prepared, input) : prepared
}

/** Summarizes the older part of the context and appends nothing but the usage of the model calls. */
export async function prepareCompaction(
  input: CompactionInput,
): Promise<PreparedCompaction | Extract<CompactionOutcome, { type: 'nothing-to-cut' | 'futile' }>> {
  const { session, headId, signal } = input
  const path = await session.getContextPath()
  const estimate = estimateContext(path, await systemInForce(session, path))
  const cut = chooseCut(path, keepFor(path, input))
  const cutOffTokens = tokensIn(path.slice(0, cut?.index ?? 0))
  if (!cut || cutOffTokens < estimate * worthwhileShare) return { type: 'nothing-to-cut' }

  const told = await summarizeCut({ ...input, path, cutIndex: cut.index, leafId: headId })
  signal.throwIfAborted()
  if (!told) return { type: 'nothing-to-cut' }
  const { text: summary, request } = told
  const previous = speakingCompaction(path)
  const freed = cutOffTokens + (previous ? entryTokens(previous) : 0) - spokenTokens(summary)
  if (freed <= 0) return { type: 'futile' }
  const tokens = countedTokens(path) ?? estimate
  return {
    type: 'prepared',
    ...{ summary, request, headId, firstKeptId: cut.entryId, previousId: previous?.id },
    tokens,
    // An estimate, so it is taken as a share and scaled to the count of the provider.
    freedTokens: tokens * (freed / estimate),
    isWorthwhile: freed >= estimate * worthwhileShare,
  }
}

/** Appends a summary if the entries that it was made of are still on the path, and no other compaction came meanwhile. */
export async function keepCompaction(
  { summary, request, firstKeptId, headId, previousId, tokens, freedTokens, isWorthwhile }: PreparedCompaction,
  { session, cause }: Pick<CompactionInput, 'session' | 'cause'>,
): Promise<CompactionOutcome> {
  const path = await session.getContextPath()
  const ids = new Set(path.map(({ id }): string | null => id))
  const isCurrent = ids.has(headId) && ids.has(firstKeptId) && speakingCompaction(path)?.id === previousId
  if (!isCurrent) return { type: 'superseded' }
  const tokensBefore =
    headId === path.at(-1)?.id
      ? tokens
      : (countedTokens(path) ?? estimateContext(path, await systemInForce(session, path)))
  const entryId = await session.appendCompaction(summary, firstKeptId, tokensBefore, {
    request,
    ...(cause && { cause }),
  })
  const tokensAfter = Math.max(0, Math.floor(tokensBefore - freedTokens))
  return { type: 'compacted', entryId, summary, firstKeptId, tokensBefore, tokensAfter, isWorthwhile }
}

/** At most half of the path: a compaction that keeps nearly everything is not worth its call. */
function keepFor(path: readonly Entry[], { settings, model, reason }: CompactionInput): number {
  const keep = Math.min(withinShare(settings.keepTokens, model.limits), Math.floor(tokensIn(path) / 2))
  // The provider counts more than we do, or its window is smaller than we know.
  return reason === 'overflow' ? Math.floor(keep / 2) : keep
}

function withinShare(tokens: number, { contextTokens }: ModelLimits): number {
  return Math.min(tokens, Math.floor(contextTokens * maxShare))
}

/** If nothing fits, for example after a huge request, keeps as little as possible. */
function chooseCut(path: readonly Entry[], keep: number): CutPoint | undefined {
  const best = chooseCutPoint({ path, sizeOf, keep })
  return best ?? findCutPoints(path).findLast(({ index }) => index > 0)
}

function tokensIn(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
}

/** A previous summary cannot be kept: the new one replaces it. */
function sizeOf(entry: Entry): number {
  return entry.type === 'compaction' ? 0 : entryTokens(entry)
}
