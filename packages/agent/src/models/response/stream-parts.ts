import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { Clock } from '../../util/clock.ts'
import { ResponseNotes, withNotes } from '../events/event-reader.ts'
import { finishOf } from './finish.ts'
import { IdleTimeout, type IdleLimits } from '../idle-timeout.ts'
import type { ModelLimits, ModelPart } from '../model.ts'
import { ModelError } from '../model-error.ts'
import { PartReader } from './part-reader.ts'
import { toModelError } from './provider-error.ts'
import type { ProviderFacts } from '../provider-facts.ts'
import { usageOf } from './usage.ts'

export interface StreamOptions {
  provider: string
  languageModel: LanguageModelV4
  facts: ProviderFacts
  limits: ModelLimits
  idle: IdleLimits
  clock: Clock
  call: LanguageModelV4CallOptions
}

type FinishPart = LanguageModelV4StreamPart & { type: 'finish' }

/** A finished answer is waited for no longer than this: some servers keep the connection open. */
const afterFinishMs = 2000
const streamOver = new Error('The answer is over.')

/** Sends a call and gives its answer part by part. However that ends, the connection does not outlive it. */
export async function* streamParts(options: StreamOptions, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  signal.throwIfAborted()
  const { provider, clock, idle } = options
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
      if (part.type === 'error') throw toModelError(part.error, { provider, now: clock.now() })
      if (part.type === 'finish') {
        // An answer may be made of several, each with an end of its own; the last one counts.
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
    // A connection that breaks after the end, or stays open, does not undo the end.
    const isOver = finish !== undefined && (timeout.signal.aborted || !(error instanceof ModelError))
    if (!isOver) throw toModelError(timeout.signal.reason ?? error, { provider, now: clock.now() })
  } finally {
    timeout.close()
    // A reason of its own: the default one is an exception whose stack trace is expensive, and nobody reads it.
    over.abort(streamOver)
  }
  noteUnknownEnd(finish, notes)
  yield* reader.readNotes(notes)
  yield* lastParts(finish, reader, options)
}

type PartStream = ReadableStreamDefaultReader<LanguageModelV4StreamPart>

/** The stream of an answer. It ends when the signal is aborted, also if its provider does not care for the signal. */
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
  // It is aborted at the end of every stream, when nobody waits for this any more.
  aborted.catch(() => undefined)
  return aborted
}

/** How long the model may now be silent; undefined for parts that only show that somebody is there. */
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

/** A reason to stop that the provider package does not know ends an answer like any other. */
function noteUnknownEnd(finish: FinishPart | undefined, notes: ResponseNotes): void {
  const { unified, raw } = finish?.finishReason ?? {}
  if (unified !== 'other' || raw === undefined || raw === 'pause_turn') return
  const kind = `stop-reason:${raw}`
  if (!notes.skipped.has(kind)) notes.skip(kind)
}

function* lastParts(finish: FinishPart | undefined, reader: PartReader, options: StreamOptions): Generator<ModelPart> {
  const { provider, limits, facts } = options
  if (!finish) throw new ModelError('network', `${provider} ended the answer in the middle.`)
  const usage = usageOf(finish.usage, facts)
  if (Object.keys(usage).length > 0) yield { type: 'usage', usage }
  const { finishReason: reason } = finish
  yield {
    type: 'finish',
    reason: finishOf({ provider, reason, usage, limits, hasCalls: reader.hasCalls, cutsSilently: facts.cutsSilently }),
  }
}
