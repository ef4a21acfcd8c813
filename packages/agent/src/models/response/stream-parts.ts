import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  LanguageModelV4FinishReason,
} from '@ai-sdk/provider'
import type { Clock } from '@tapetree/session/util/wait'
import { ResponseNotes, withNotes } from '../events/event-reader.ts'
import { IdleTimeout, type IdleLimits } from '../idle-timeout.ts'
import { ModelError, type ModelLimits, type ModelPart, type FinishReason, type ModelErrorKind } from '../model.ts'
import { PartReader } from './part-reader.ts'
import { toModelError } from './provider-error.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import type { Usage } from '@tapetree/session'
import type { ReportedCost } from '../hosts.ts'

export interface StreamOptions {
  provider: string
  apiKey?: string | undefined
  languageModel: LanguageModelV4
  facts: ProviderFacts
  limits: ModelLimits
  idle: IdleLimits
  clock: Clock
  call: LanguageModelV4CallOptions
}

type FinishPart = LanguageModelV4StreamPart & { type: 'finish' }

/** The maximum wait after the end of an answer: some servers keep the connection open. */
const afterFinishMs = 2000
const streamOver = new Error('The answer is over.')

/** Sends a call and yields its answer in parts. The connection never outlives it. */
export async function* streamParts(options: StreamOptions, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  signal.throwIfAborted()
  const { provider, apiKey, clock, idle } = options
  const timeout = new IdleTimeout({ provider, clock, limitMs: idle.firstMs })
  const over = new AbortController()
  const ended = AbortSignal.any([signal, timeout.signal, over.signal])
  const reader = new PartReader(options.facts)
  const notes = new ResponseNotes()
  let finish: FinishPart | undefined
  try {
    const stream = await withNotes(notes, () => openStream(options, ended))
    for (let next = await stream.read(); !next.done; next = await stream.read()) {
      const part = next.value
      if (part.type === 'error') throw toModelError(part.error, { provider, apiKey, now: clock.now() })
      if (part.type === 'finish') {
        // An answer may consist of several, each with its own end; the last one counts.
        finish = part
        timeout.touch(afterFinishMs)
        continue
      }
      const limitMs = patienceAfter(part, idle)
      if (limitMs !== undefined) timeout.touch(limitMs)
      const ours = reader.read(part)
      if (!ours) continue
      timeout.pause()
      yield ours
      timeout.touch()
    }
    ended.throwIfAborted()
  } catch (error) {
    signal.throwIfAborted()
    // A connection that breaks after the end, or stays open, does not invalidate the end.
    const isOver = finish !== undefined && (timeout.signal.aborted || !(error instanceof ModelError))
    if (!isOver) throw toModelError(timeout.signal.reason ?? error, { provider, apiKey, now: clock.now() })
  } finally {
    timeout.close()
    // A constant reason: the default one is an exception with an expensive stack trace, which is never read.
    over.abort(streamOver)
  }
  noteUnknownEnd(finish, notes)
  yield* reader.readNotes(notes)
  yield* lastParts(finish, reader, options)
}

type PartStream = ReadableStreamDefaultReader<LanguageModelV4StreamPart>

/** The stream of an answer. It ends when the signal is aborted, even if its provider ignores the signal. */
async function openStream({ languageModel, call }: StreamOptions, signal: AbortSignal): Promise<PartStream> {
  const answer = Promise.resolve(languageModel.doStream({ ...call, abortSignal: signal }))
  const { stream } = await Promise.race([answer, rejectWhenAborted(signal)])
  const reader = stream.getReader()
  signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true })
  return reader
}

function rejectWhenAborted(signal: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
  // The signal is aborted at the end of every stream, when this promise has no other handler.
  aborted.catch(() => undefined)
  return aborted
}

/** How long the model may be silent from now on; undefined for parts that only keep the connection alive. */
function patienceAfter({ type }: LanguageModelV4StreamPart, { firstMs, laterMs }: IdleLimits): number | undefined {
  switch (type) {
    case 'reasoning-delta':
    case 'reasoning-end':
      return firstMs
    case 'text-delta':
    case 'text-end':
    case 'tool-input-start':
    case 'tool-input-delta':
    case 'tool-input-end':
    case 'tool-call':
      return laterMs
    default:
      return undefined
  }
}

/** A finish reason that the provider package does not know ends an answer like any other. */
function noteUnknownEnd(finish: FinishPart | undefined, notes: ResponseNotes): void {
  const { unified, raw } = finish?.finishReason ?? {}
  if (unified !== 'other' || raw === undefined || raw === 'pause_turn') return
  const kind = `stop-reason:${raw}`
  if (!notes.skipped.has(kind)) notes.skip(kind)
}

function* lastParts(finish: FinishPart | undefined, reader: PartReader, options: StreamOptions): Generator<ModelPart> {
  const { provider, limits, facts } = options
  if (!finish) throw new ModelError('network', `${provider} ended the answer before it was complete.`)
  const usage = usageOf(finish.usage, facts)
  if (Object.keys(usage).length > 0) yield { type: 'usage', usage }
  const { finishReason: reason } = finish
  yield {
    type: 'finish',
    reason: finishOf({ provider, reason, usage, limits, hasCalls: reader.hasCalls, cutsSilently: facts.cutsSilently }),
  }
}

/** How a host counts, if hosts differ. */
interface UsageRules {
  reasoningTokens?: 'inside' | 'beside' | undefined
  cost?: ReportedCost | undefined
}

/**
 * `inputTokens` includes cache reads and writes, `outputTokens` includes reasoning. `cost` is the amount that the host
 * reports; absent if it does not.
 */
function usageOf(usage: LanguageModelV4Usage, rules: UsageRules = {}): Usage {
  const { inputTokens: input, outputTokens: output } = usage
  const raw = asRecord(usage.raw)
  const promptDetails = asRecord(raw['prompt_tokens_details'])
  const reasoning = output.reasoning || numberIn(raw['reasoning_tokens']) || output.reasoning
  const outputTotal = outputOf({ total: output.total, reasoning, raw, rules })
  const total =
    input.total === undefined && outputTotal === undefined ? undefined : (input.total ?? 0) + (outputTotal ?? 0)
  return {
    ...count('inputTokens', input.total),
    ...count('outputTokens', outputTotal),
    ...count(
      'cacheReadTokens',
      input.cacheRead || numberIn(raw['prompt_cache_hit_tokens']) || numberIn(raw['cached_tokens']) || input.cacheRead,
    ),
    ...count('cacheWriteTokens', input.cacheWrite ?? numberIn(promptDetails['cache_write_tokens'])),
    ...count('reasoningTokens', reasoning),
    ...count('totalTokens', total),
    ...count('cost', rules.cost && costIn(raw, rules.cost)),
  }
}

/** Chat Completions hosts count reasoning inside completion tokens or beside them; their total shows which. */
function outputOf({
  total,
  reasoning = 0,
  raw,
  rules,
}: {
  total: number | undefined
  reasoning: number | undefined
  raw: Record<string, unknown>
  rules: UsageRules
}): number | undefined {
  const [prompt, completion, sum] = [raw['prompt_tokens'], raw['completion_tokens'], raw['total_tokens']].map(numberIn)
  if (completion === undefined || reasoning === 0) return total
  const isBeside =
    sum === undefined ? rules.reasoningTokens === 'beside' : sum === (prompt ?? 0) + completion + reasoning
  return isBeside ? completion + reasoning : total
}

const ticksPerDollar = 1e10

function costIn(raw: Record<string, unknown>, place: ReportedCost): number | undefined {
  switch (place) {
    case 'usage.cost_in_usd_ticks': {
      const ticks = numberIn(raw['cost_in_usd_ticks'])
      return ticks === undefined ? undefined : ticks / ticksPerDollar
    }
    case 'usage.cost.total_cost':
      return numberIn(asRecord(raw['cost'])['total_cost'])
    case 'usage.cost': {
      const cost = numberIn(raw['cost'])
      // With the user's own key at the upstream provider, `cost` is the fee alone.
      const upstream = raw['is_byok'] === true ? numberIn(asRecord(raw['cost_details'])['upstream_inference_cost']) : 0
      return cost === undefined ? undefined : cost + (upstream ?? 0)
    }
    default:
      place satisfies never
      return undefined
  }
}

function count(name: keyof Usage, value: number | undefined): Usage {
  return value === undefined ? {} : { [name]: value }
}

function numberIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

export interface Ending {
  provider: string
  reason: LanguageModelV4FinishReason
  usage: Usage
  limits: ModelLimits
  hasCalls: boolean
  /** The host silently drops input that does not fit. */
  cutsSilently?: boolean | undefined
}

/** Why the answer ended; throws if the end is a failure. */
export function finishOf(ending: Ending): FinishReason {
  const { provider, reason, usage, limits } = ending
  const failure = failureOf(reason)
  if (failure) throw new ModelError(failure.kind, `${provider} ${failure.text}${reason.raw ? ` (${reason.raw})` : ''}.`)
  if (isSilentOverflow(ending)) {
    const text = `${provider} took ${usage.inputTokens} tokens for a window of ${limits.contextTokens}`
    throw new ModelError('context-overflow', `${text}: it did not read all of them.`)
  }
  switch (reason.unified) {
    case 'stop':
    case 'other':
      if (reason.raw === 'pause_turn' && !ending.hasCalls) return 'pause'
      // Some servers end an answer with calls as if it had none.
      return ending.hasCalls ? 'tool-calls' : reason.unified
    case 'length':
    case 'tool-calls':
      return reason.unified
    default:
      return 'other'
  }
}

function failureOf({
  unified,
  raw = '',
}: LanguageModelV4FinishReason): { kind: ModelErrorKind; text: string } | undefined {
  if (unified === 'content-filter') return { kind: 'refused', text: 'refused to answer' }
  if (unified === 'interrupted') return { kind: 'network', text: 'ended the answer before it was complete' }
  const kind = failedEndings.get(raw.toLowerCase()) ?? (unified === 'error' ? 'overloaded' : undefined)
  return kind && { kind, text: 'ended the answer with an error' }
}

/** Finish reasons that stand for errors; a retry may succeed. */
const failedEndings = new Map<string, ModelErrorKind>([
  ['error', 'overloaded'], // OpenRouter
  ['insufficient_system_resource', 'overloaded'], // DeepSeek
  ['network_error', 'network'], // Z.ai
  ['malformed_function_call', 'overloaded'], // Google
  ['malformed_response', 'overloaded'], // Google
  ['unexpected_tool_call', 'overloaded'], // Google
])

/**
 * A few hosts drop excess input and answer the rest; some have no room left for an answer. At other hosts, more input
 * than the window proves nothing: their usage may sum several steps, or the window may be larger than we know.
 */
function isSilentOverflow({ reason, usage, limits, cutsSilently = false }: Ending): boolean {
  const { inputTokens = 0, outputTokens } = usage
  if (cutsSilently && inputTokens > limits.contextTokens) return true
  return reason.unified === 'length' && outputTokens === 0 && inputTokens >= 0.9 * limits.contextTokens
}
