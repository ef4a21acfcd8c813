import { untilAborted } from '@tapetree/session/util/deadline'
import type { Model, ModelPart } from '../models/model.ts'
import type { Gate } from '../tools/tool.ts'
import { derivedIterable } from '../util/derived-iterable.ts'
import type { Content, Session } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { Listeners } from '@tapetree/session/util/listeners'

/** The same model until the signal is aborted: then no model call starts, and a running one ends with the reason. */
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

/** Handles any error by which a provider reports the abort. A complete answer is kept. */
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

/** The same gate until the signal is aborted: then it admits no call, and a pending question is not withdrawn. */
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

/** Calls that have started and have no result yet, according to the log. */
export class RunningCalls {
  readonly #toolOf = new Map<string, string>()
  readonly #changes = new Listeners<void>()
  readonly #stop: () => void

  constructor(session: Session) {
    this.#stop = session.subscribe(({ line }) => this.#take(line))
  }

  /** The names of their tools. */
  get tools(): readonly string[] {
    return [...this.#toolOf.values()]
  }

  /** A call that an earlier process started, and this one waits for. */
  reattach(callId: string, tool: string): void {
    this.#toolOf.set(callId, tool)
    this.#changes.notify()
  }

  /** Resolves when the condition is true for the running tools. */
  async until(isSo: (tools: readonly string[]) => boolean): Promise<void> {
    while (!isSo(this.tools)) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const stop = this.#changes.add(resolve)
      await promise
      stop()
    }
  }

  close(): void {
    this.#stop()
  }

  #take(line: Line): void {
    if (line.type === 'tool_start') this.#toolOf.set(line.toolStart.callId, line.toolStart.name)
    else if (line.type === 'message') this.#takeResults(line.message.content)
    else return
    this.#changes.notify()
  }

  #takeResults(content: readonly Content[]): void {
    for (const block of content) {
      if (block.type === 'tool_result') this.#toolOf.delete(block.toolResult.toolUseId)
    }
  }
}
