import { untilAborted } from '@tapetree/session/util/deadline'
import type { Model, ModelPart } from '../models/model.ts'
import type { Gate } from '../tools/gate.ts'
import { derivedIterable } from '../util/derived-iterable.ts'

/** The same model, until the signal is aborted: then no call is begun, and one that goes on ends with the reason. */
export function untilLeaving(model: Model, leaving: AbortSignal): Model {
  return {
    provider: model.provider,
    id: model.id,
    api: model.api,
    limits: model.limits,
    ...(model.costOf && { costOf: (usage) => model.costOf?.(usage) }),
    prepare: (request) => {
      leaving.throwIfAborted()
      const call = model.prepare(request)
      return {
        reference: call.reference,
        stream: (signal) => partsUntil(leaving, call.stream(AbortSignal.any([signal, leaving]))),
      }
    },
  }
}

/** However a provider puts it that it was stopped; an answer that is whole is kept. */
function partsUntil(leaving: AbortSignal, parts: AsyncIterable<ModelPart>): AsyncIterable<ModelPart> {
  return derivedIterable(parts, (iterator) => {
    let isWhole = false
    const pass = (result: IteratorResult<ModelPart>): IteratorResult<ModelPart> => {
      if (result.done && !isWhole) leaving.throwIfAborted()
      isWhole ||= !result.done && result.value.type === 'finish'
      return result
    }
    const fail = (error: unknown): never => {
      leaving.throwIfAborted()
      throw error
    }
    return () => iterator.next().then(pass, fail)
  })
}

/** The same gate, until the signal is aborted: then nobody passes, and a question that waits for its answer is not withdrawn. */
export function gateUntilLeaving(gate: Gate, leaving: AbortSignal): Gate {
  return {
    admit: async (call, signal) => {
      leaving.throwIfAborted()
      const verdict = await untilAborted(gate.admit(call, AbortSignal.any([signal, leaving])), leaving)
      leaving.throwIfAborted()
      return verdict
    },
  }
}
