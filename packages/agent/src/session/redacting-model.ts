import type { Model, ModelPart } from '../models/model.ts'
import type { RedactingStream } from '../redaction/redacting-stream.ts'
import type { Redactor } from '../redaction/redactor.ts'

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
async function* redactParts(parts: AsyncIterable<ModelPart>, redactor: Redactor): AsyncGenerator<ModelPart> {
  const open = new Map<number, RedactingStream>()
  try {
    for await (const part of parts) {
      if (part.type === 'text_delta') {
        const stream = open.get(part.part) ?? redactor.stream()
        open.set(part.part, stream)
        const text = stream.write(part.text)
        if (text !== '') yield { ...part, text }
        continue
      }
      if (part.type === 'text_end') yield* rest(open, part.part)
      if (part.type === 'finish') yield* restOfAll(open)
      yield part
    }
  } catch (error) {
    // What was said before it broke off is kept.
    yield* restOfAll(open)
    throw error
  }
  yield* restOfAll(open)
}

function* restOfAll(open: Map<number, RedactingStream>): Generator<ModelPart> {
  for (const part of open.keys()) yield* rest(open, part)
}

function* rest(open: Map<number, RedactingStream>, part: number): Generator<ModelPart> {
  const text = open.get(part)?.end() ?? ''
  open.delete(part)
  if (text !== '') yield { type: 'text_delta', part, text }
}
