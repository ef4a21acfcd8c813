import type { Cause, Session } from '@tapetree/session'
import type { Entry } from '@tapetree/session/format'
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
}

export const defaultCompaction: CompactionSettings = { isEnabled: true, reserveTokens: 16_384, keepTokens: 20_000 }

/** The maximum share of a small window for the reserve, and for the kept part. */
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

/** Replaces the older part of the context by a summary. Nothing is removed: branching to before it undoes it. */
export async function compact(input: CompactionInput): Promise<CompactionOutcome> {
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

  const firstKeptId = cut.entryId
  if (!(await isOnPath(session, [headId, firstKeptId]))) return { type: 'superseded' }
  const tokensBefore = countedTokens(path) ?? estimate
  const entryId = await session.appendCompaction(summary, firstKeptId, tokensBefore, {
    request,
    ...(input.cause && { cause: input.cause }),
  })
  // The freed amount is an estimate, so it is taken as a share and scaled to the count of the provider.
  const tokensAfter = Math.floor(tokensBefore * (1 - freed / estimate))
  const isWorthwhile = freed >= estimate * worthwhileShare
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

async function isOnPath(session: Session, ids: readonly (string | null)[]): Promise<boolean> {
  const path = new Set((await session.getContextPath()).map(({ id }): string | null => id))
  return ids.every((id) => path.has(id))
}
