import { ModelError, thinkingLevels, type ModelRequest, type ThinkingLevel } from '../models/model.ts'
import { inlineImages } from '../prompt/images.ts'
import {
  keepCompaction,
  needsCompaction,
  needsHeadStart,
  prepareCompaction,
  type CompactionOutcome,
  type CompactionReason,
  type PreparedCompaction,
} from '../summary/compaction.ts'
import { contextSize } from '../summary/context-size.ts'
import { toolsByName, type OpenRun } from './open-run.ts'
import { systemChanges } from './prepare-run.ts'

export interface LoopRequest extends ModelRequest {
  leafId: string | null
  /** The extensions that changed the messages. Such a request cannot be rebuilt from the log alone. */
  changedBy?: string[]
}

/** The next request to the model. Compacts first if the context is nearly full, and begins a summary in the background before that. */
export async function requestOf(open: OpenRun): Promise<LoopRequest> {
  const { session, settings } = open.deps
  const isReady = open.deps.background?.isReady ?? false
  if (isReady) await takeBackground(open)
  let level = await fillLevel(open)
  const isFull = level === 'nearly-full'
  if (isFull) {
    if (open.deps.background?.isBegun && (await takeBackground(open))) level = await fillLevel(open)
    if (level === 'nearly-full') await compactInTime(open)
  }
  await renewTools(open)
  if (level === 'head-start') await beginInBackground(open)
  let leafId = await open.storedHead()
  // All this takes time: deliver the steers that came meanwhile.
  while (await deliverSteers(open)) leafId = await open.storedHead()
  const context = await session.getContext({ leafId, reasoning: settings.reasoning })
  const given = context.messages.map(({ message }) => message)
  const { messages, changedBy } = await open.hooks.context(given, open.signal)
  const { maxOutputTokens, temperature } = settings
  return {
    leafId,
    system: context.system?.prompt ?? '',
    tools: context.system?.tools ?? [],
    messages: await inlineImages(messages, (sha256) => session.getBlob(sha256)),
    thinkingLevel: thinkingLevelOf(context.thinkingLevel),
    ...(changedBy.length > 0 && { changedBy }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
  }
}

/** Delivers all waiting steers. Returns whether there were any. */
export async function deliverSteers(open: OpenRun): Promise<boolean> {
  let wasSteered = false
  for (let steer = open.nextSteer(); steer; steer = open.nextSteer()) {
    await open.deliver(steer)
    wasSteered = true
  }
  return wasSteered
}

/** Compacts the context of a run. Returns false if that freed too little, or an extension cancelled it. */
export async function compactRun(open: OpenRun, reason: CompactionReason): Promise<boolean> {
  const { runId, model, signal, hooks } = open
  const { session, settings, observe, background } = open.deps
  const before = await hooks.beforeCompact({ reason }, signal)
  if (before.cancelledBy !== undefined) {
    open.isCompactionFutile = true
    return false
  }
  observe({ type: 'auto_compaction_start', runId, reason })
  let outcome: 'compacted' | 'futile' | 'failed' = 'failed'
  try {
    // It would be superseded.
    await background?.stop()
    signal.throwIfAborted()
    const prepared = await prepareCompaction({
      session,
      model,
      headId: await open.storedHead(),
      settings: settings.compaction,
      reason,
      signal,
      ...(before.instructions !== undefined && { instructions: before.instructions }),
    })
    const compacted = prepared.type === 'prepared' ? await keepIn(open, prepared) : prepared
    const isWorthwhile = compacted.type === 'compacted' && compacted.isWorthwhile
    outcome = isWorthwhile ? 'compacted' : 'futile'
    open.isCompactionFutile = !isWorthwhile
    return isWorthwhile
  } finally {
    observe({ type: 'auto_compaction_end', runId, reason, outcome })
  }
}

async function keepIn(open: OpenRun, prepared: PreparedCompaction): Promise<CompactionOutcome> {
  const { session } = open.deps
  let kept: CompactionOutcome = { type: 'superseded' }
  await open.moveHead(async () => {
    kept = await keepCompaction(prepared, { session })
    return kept.type === 'compacted' ? kept.entryId : undefined
  })
  return kept
}

/** How full the context is: `head-start` if a summary should be begun in the background. */
async function fillLevel(open: OpenRun): Promise<'free' | 'head-start' | 'nearly-full'> {
  const { session, settings, background } = open.deps
  const { limits } = open.model
  const mayBegin = background !== undefined && !background.isBegun && !open.isHeadStartFutile
  if (!settings.compaction.isEnabled || (open.isCompactionFutile && !mayBegin)) return 'free'
  const context = { tokens: await contextSize(session), limits, settings: settings.compaction }
  if (!open.isCompactionFutile && needsCompaction(context)) return 'nearly-full'
  return mayBegin && !open.isCompactionFutile && needsHeadStart(context) ? 'head-start' : 'free'
}

/** Begins a summary that the run does not wait for. */
async function beginInBackground(open: OpenRun): Promise<void> {
  const { model, signal, hooks } = open
  const { session, settings, background } = open.deps
  const { instructions, cancelledBy } = await hooks.beforeCompact({ reason: 'threshold' }, signal)
  if (cancelledBy !== undefined) {
    open.isHeadStartFutile = true
    return
  }
  const headId = await open.storedHead()
  background?.begin({
    ...{ session, model, headId, settings: settings.compaction, reason: 'threshold', signal },
    ...(instructions !== undefined && { instructions }),
  })
}

/** Appends the summary of the background, and waits for it if necessary. Returns false if there is none, or the path has changed. */
async function takeBackground(open: OpenRun): Promise<boolean> {
  const { runId } = open
  const { background, observe } = open.deps
  observe({ type: 'auto_compaction_start', runId, reason: 'threshold' })
  let outcome: 'compacted' | 'futile' | 'failed' = 'failed'
  try {
    const made = await background?.take(open.signal)
    open.signal.throwIfAborted()
    if (made?.type === 'useless') outcome = 'futile'
    if (made?.type === 'useless' || made?.type === 'failed') open.isHeadStartFutile = true
    if (made?.type !== 'prepared' || (await keepIn(open, made.prepared)).type !== 'compacted') return false
    outcome = 'compacted'
    return true
  } finally {
    observe({ type: 'auto_compaction_end', runId, reason: 'threshold', outcome })
  }
}

/** If compacting fails, the request is sent anyway: it may still fit, and otherwise the provider rejects it. */
async function compactInTime(open: OpenRun): Promise<void> {
  try {
    await compactRun(open, 'threshold')
  } catch (error) {
    if (!(error instanceof ModelError) || open.signal.aborted) throw error
    open.isCompactionFutile = true
  }
}

/** An accepted plan adds tools. The model gets them with the next turn, not only with the next run. */
async function renewTools(open: OpenRun): Promise<void> {
  const tools = toolsByName(open.deps.tools())
  if (tools.size === open.tools.size && [...tools.keys()].every((name) => open.tools.has(name))) return
  open.tools = tools
  await open.appendAll((await systemChanges(open)).map((draft) => ({ draft })))
}

function thinkingLevelOf(level: string | null): ThinkingLevel {
  return thinkingLevels.find((known) => known === level) ?? 'off'
}
