import type { Model, ModelPart } from '../models/model.ts'
import type { RedactingStream } from '../redaction/redacting-stream.ts'
import type { Redactor } from '../redaction/redactor.ts'
import { derivedIterable } from '../util/derived-iterable.ts'

/** The same model, whose text is redacted as it comes in, so that draft, screens and log all hold the same. */
export function redactingModel(model: Model, redactor: Redactor): Model {
  return {
    provider: model.provider,
    id: model.id,
    api: model.api,
    limits: model.limits,
    ...(model.costOf && { costOf: (usage) => model.costOf?.(usage) }),
    prepare: (request) => {
      const call = model.prepare(request)
      return { reference: call.reference, stream: (signal) => redactParts(call.stream(signal), redactor) }
    },
  }
}

/** A key may come in two pieces: a piece that could be the beginning of one is held back until that is clear. */
function redactParts(parts: AsyncIterable<ModelPart>, redactor: Redactor): AsyncIterable<ModelPart> {
  return derivedIterable(parts, (iterator) => {
    const redacted = new RedactedParts(iterator, redactor)
    return () => redacted.next()
  })
}

class RedactedParts {
  readonly #parts: AsyncIterator<ModelPart>
  readonly #redactor: Redactor
  readonly #open = new Map<number, RedactingStream>()
  /** What is given out before anything else is read. */
  readonly #ready: ModelPart[] = []
  #end: { error?: unknown } | undefined

  constructor(parts: AsyncIterator<ModelPart>, redactor: Redactor) {
    this.#parts = parts
    this.#redactor = redactor
  }

  next(): Promise<IteratorResult<ModelPart>> {
    const ready = this.#ready.shift()
    if (ready) return Promise.resolve({ done: false, value: ready })
    if (!this.#end) return this.#parts.next().then(this.#take, this.#fail)
    if ('error' in this.#end) return Promise.reject(this.#end.error)
    return Promise.resolve({ done: true, value: undefined })
  }

  readonly #take = (
    result: IteratorResult<ModelPart>,
  ): IteratorResult<ModelPart> | Promise<IteratorResult<ModelPart>> => {
    if (result.done) {
      this.#giveAll()
      this.#end = {}
      return this.next()
    }
    const part = result.value
    if (part.type === 'text_delta') {
      const text = this.#streamOf(part.part).write(part.text)
      if (text === part.text) return result
      return text === '' ? this.next() : { done: false, value: { ...part, text } }
    }
    if (part.type === 'text_end') this.#give(part.part)
    if (part.type === 'finish') this.#giveAll()
    if (this.#ready.length === 0) return result
    this.#ready.push(part)
    return this.next()
  }

  /** What was said before it broke off is kept. */
  readonly #fail = (error: unknown): Promise<IteratorResult<ModelPart>> => {
    this.#giveAll()
    this.#end = { error }
    return this.next()
  }

  #streamOf(part: number): RedactingStream {
    let stream = this.#open.get(part)
    if (!stream) this.#open.set(part, (stream = this.#redactor.stream()))
    return stream
  }

  #giveAll(): void {
    for (const part of this.#open.keys()) this.#give(part)
  }

  #give(part: number): void {
    const text = this.#open.get(part)?.end() ?? ''
    this.#open.delete(part)
    if (text !== '') this.#ready.push({ type: 'text_delta', part, text })
  }
}
