import { chooseCutPoint, findCutPoints, type Cause, type CutPoint, type Entry, type Session } from '@tapetree/session'
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
  /** False: only by hand. */
  isEnabled: boolean
  /** What is left free of the model's window for its answer, and for what a turn adds to the context. */
  reserveTokens: number
  /** About how much of the conversation stays word for word. */
  keepTokens: number
}

export const defaultCompaction: CompactionSettings = { isEnabled: true, reserveTokens: 16_384, keepTokens: 20_000 }

/** Neither the reserve nor what is kept takes more of a small window than this. */
const maxShare = 0.25
/** A compaction that frees less is not worth trying again. */
const worthwhileShare = 0.05

export type CompactionReason = 'threshold' | 'overflow' | 'manual'

export interface CompactionInput {
  session: Session
  model: Model
  /** Where the run stands, which is the leaf. */
  headId: string | null
  settings: CompactionSettings
  reason: CompactionReason
  /** What the summary is to take care of. */
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
      /** False: so little was freed that it need not be tried again. */
      isWorthwhile: boolean
    }
  /** There is no cut that would free enough, and nothing was asked of the model. */
  | { type: 'nothing-to-cut' }
  /** The summary came out as long as what it was to stand for, and is not used. */
  | { type: 'futile' }
  /** The leaf was moved, or somebody else compacted, while the summary was being written; it is not used. */
  | { type: 'superseded' }

export function needsCompaction(context: {
  tokens: number
  limits: ModelLimits
  settings: CompactionSettings
}): boolean {
  const { tokens, limits, settings } = context
  return settings.isEnabled && tokens > limits.contextTokens - withinShare(settings.reserveTokens, limits)
}

/** Puts a summary in the place of the older part of the context. Nothing is removed: branching to before it undoes it. */
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
  // What was freed is an estimate, so it is taken as a share and put on the scale of the provider's own count.
  const tokensAfter = Math.floor(tokensBefore * (1 - freed / estimate))
  const isWorthwhile = freed >= estimate * worthwhileShare
  return { type: 'compacted', entryId, summary, firstKeptId, tokensBefore, tokensAfter, isWorthwhile }
}

/** Never more than half of what there is: a compaction that keeps nearly everything is not worth its call. */
function keepFor(path: readonly Entry[], { settings, model, reason }: CompactionInput): number {
  const keep = Math.min(withinShare(settings.keepTokens, model.limits), Math.floor(tokensIn(path) / 2))
  // The provider counts more than we do, or its window is smaller than we know.
  return reason === 'overflow' ? Math.floor(keep / 2) : keep
}

function withinShare(tokens: number, { contextTokens }: ModelLimits): number {
  return Math.min(tokens, Math.floor(contextTokens * maxShare))
}

/** Where nothing fits, such as behind a huge request, as little as possible is kept. */
function chooseCut(path: readonly Entry[], keep: number): CutPoint | undefined {
  const best = chooseCutPoint({ path, sizeOf, keep })
  return best ?? findCutPoints(path).findLast(({ index }) => index > 0)
}

function tokensIn(entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
}

/** A summary of before is no part of what can be kept: the new one takes its place. */
function sizeOf(entry: Entry): number {
  return entry.type === 'compaction' ? 0 : entryTokens(entry)
}

async function isOnPath(session: Session, ids: readonly (string | null)[]): Promise<boolean> {
  const path = new Set((await session.getContextPath()).map(({ id }): string | null => id))
  return ids.every((id) => path.has(id))
}
