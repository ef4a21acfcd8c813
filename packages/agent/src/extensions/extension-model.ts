import { z } from 'zod'
import {
  ModelError,
  type Model,
  type ModelLimits,
  type ModelPart,
  type ModelRequest,
  type ModelErrorKind,
} from '../models/model.ts'
import { hashOf } from '../util/request-hash.ts'
import { ExtensionFailure } from './extension-failure.ts'
import type { LoadedExtension } from './loaded-extension.ts'

export interface ExtensionModelOptions {
  provider: string
  id: string
  limits: ModelLimits
  /** How long it may send nothing. */
  silenceMs: number
}

/** A model that an extension calls. */
export function extensionModel(options: ExtensionModelOptions, extension: LoadedExtension): Model {
  const { provider, id, limits } = options
  return {
    provider,
    id,
    api: 'extension',
    limits,
    prepare: (request) => ({
      reference: { sha256: hashOf(request), adapter: 'extension', adapterVersion: '1', params: { modelId: id } },
      stream: (signal) => stream(request, options, { extension, signal }),
    }),
  }
}

async function* stream(
  request: ModelRequest,
  { provider, id, silenceMs }: ExtensionModelOptions,
  { extension, signal }: { extension: LoadedExtension; signal: AbortSignal },
): AsyncGenerator<ModelPart> {
  signal.throwIfAborted()
  const parts = new Handover<unknown>()
  const left = new AbortController()
  const stop = (): void => parts.end()
  signal.addEventListener('abort', stop, { once: true })
  const work = extension
    .invoke(
      { type: 'model', provider, request: { ...request, modelId: id } },
      {
        limitMs: silenceMs,
        session: undefined,
        signal: AbortSignal.any([signal, left.signal]),
        takePart: (part) => parts.give(part),
      },
    )
    .then(
      () => parts.end(),
      (error: unknown) => parts.end(error as Error),
    )
  let isFinished = false
  try {
    for await (const given of parts) {
      const part = readPart(given)
      isFinished ||= part.type === 'finish'
      yield part
    }
    signal.throwIfAborted()
    if (!isFinished) throw new ModelError('network', `The answer of ${provider}/${id} is incomplete.`)
  } catch (error) {
    signal.throwIfAborted()
    throw modelError(error, extension)
  } finally {
    signal.removeEventListener('abort', stop)
    left.abort()
    parts.end()
    void work
  }
}

const partSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text_delta'), part: z.int(), text: z.string() }),
  z.looseObject({ type: z.literal('text_end'), part: z.int() }),
  z.looseObject({ type: z.literal('reasoning_delta'), part: z.int(), text: z.string() }),
  z.looseObject({ type: z.literal('reasoning_end'), part: z.int(), signature: z.string().exactOptional() }),
  z.looseObject({ type: z.literal('tool_input_start'), part: z.int(), callId: z.string(), name: z.string() }),
  z.looseObject({ type: z.literal('tool_input_delta'), part: z.int(), text: z.string() }),
  z.looseObject({
    type: z.literal('tool_call'),
    part: z.int(),
    callId: z.string(),
    name: z.string(),
    input: z.string(),
  }),
  z.looseObject({ type: z.literal('usage'), usage: z.record(z.string(), z.number()) }),
  z.looseObject({ type: z.literal('finish'), reason: z.enum(['stop', 'tool-calls', 'length', 'pause', 'other']) }),
])

function readPart(given: unknown): ModelPart {
  const result = partSchema.safeParse(given)
  if (result.success) return result.data
  throw new ExtensionFailure('wrong-value', `The output of its model is not valid. ${z.prettifyError(result.error)}`)
}

const kinds: Record<ModelErrorKind, true> = {
  'rate-limited': true,
  overloaded: true,
  network: true,
  'context-overflow': true,
  auth: true,
  quota: true,
  refused: true,
  'empty-answer': true,
  'invalid-request': true,
  unknown: true,
}

function modelError(error: unknown, extension: LoadedExtension): ModelError {
  if (error instanceof ModelError) return error
  const failure = error as ExtensionFailure
  // An unreachable provider is not a failure of the extension.
  if (failure.kind !== 'threw') extension.fail('model', failure)
  const { errorKind } = failure
  const kind = errorKind !== undefined && Object.hasOwn(kinds, errorKind) ? (errorKind as ModelErrorKind) : 'unknown'
  return new ModelError(failure.kind === 'overdue' ? 'network' : kind, failure.message, { cause: error })
}

/** Passes one item at a time; the producer waits until it was consumed. */
class Handover<Item> implements AsyncIterable<Item> {
  readonly #given: { item: Item; taken: () => void }[] = []
  #end: { error?: Error | undefined } | undefined
  #wake: () => void = () => undefined

  async give(item: Item): Promise<void> {
    if (this.#end) throw new Error('The consumer has stopped.')
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#given.push({ item, taken: resolve })
    this.#wake()
    return promise
  }

  /** The first end counts. Earlier items are still delivered. */
  end(error?: Error): void {
    this.#end ??= { error }
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (;;) {
      const next = this.#given.shift()
      if (next) {
        next.taken()
        yield next.item
      } else if (this.#end) {
        if (this.#end.error) throw this.#end.error
        return
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    }
  }
}
