import { newId, text, type Content, type Message, type ToolUse } from '@tapetree/session'
import type { RequestReference } from '@tapetree/session/format'
import { ModelError, type Model, type ModelCall } from '../models/model.ts'
import { Answer } from './answer.ts'
import type { OpenRun } from './open-run.ts'
import type { Position } from './position.ts'
import { requestOf, type LoopRequest } from './request.ts'
import { answerCall, resultText } from './tool-results.ts'

/**
 * One model call. Appends its answer as one entry and returns the position of the run. A failed call becomes an
 * `attempt` beside the path and throws. An aborted call keeps the partial answer, answers its calls and throws.
 */
export async function turn(open: OpenRun): Promise<Position> {
  const { signal, draft, deps } = open
  signal.throwIfAborted()
  open.spend('request')
  const request = await requestOf(open)
  signal.throwIfAborted()
  const call = open.model.prepare(request)
  const said = new Said(open, request, referenceTo(call, request))
  try {
    for await (const part of call.stream(signal)) {
      const live = said.answer.take(part)
      if (!live) continue
      draft.add(live)
      deps.observe(live)
    }
    signal.throwIfAborted()
    said.throwIfEmpty()
  } catch (error) {
    await (signal.aborted ? said.keepAborted() : said.keepFailed(error))
    await draft.clear()
    throw error
  }
  const position = await said.keep()
  await draft.clear()
  return position
}

function referenceTo({ reference }: ModelCall, { leafId, changedBy }: LoopRequest): RequestReference {
  return changedBy ? { ...reference, params: { ...reference.params, changedBy }, leafId } : { ...reference, leafId }
}

/** The answer of a model call, and the ways to keep it. */
class Said {
  readonly answer: Answer
  readonly #open: OpenRun
  readonly #request: LoopRequest
  readonly #reference: RequestReference
  readonly #model: Model
  readonly #startedAt: number

  constructor(open: OpenRun, request: LoopRequest, reference: RequestReference) {
    this.answer = new Answer(newId(), open.runId)
    this.#open = open
    this.#request = request
    this.#reference = reference
    this.#model = open.model
    this.#startedAt = open.deps.clock.now()
  }

  async keep(): Promise<Position> {
    const { calls, finish } = this.answer
    const cutOff = calls.find((call) => call.partialInput !== undefined)
    if (cutOff) return this.#keepCutOff(cutOff)
    await this.#append(finish ?? 'other')
    if (finish === 'pause' && calls.length === 0) return this.#continuePaused()
    return { openCalls: calls, isSettled: calls.length === 0 }
  }

  /**
   * An answer without text and calls is a failed attempt, even if it has reasoning: there is nothing to show or run.
   */
  throwIfEmpty(): void {
    const { content, finish } = this.answer
    const isEmpty = content.every((block) => !isSaid(block))
    if (!isEmpty) return
    const reason =
      finish === 'length' ? 'reached its maximum length without text or calls' : 'returned no text and no calls'
    throw new ModelError('empty-answer', `${this.#model.provider} ended its answer: it ${reason}.`)
  }

  /** Keeps the partial answer on the path and answers every call it makes. */
  async keepAborted(): Promise<void> {
    await this.#append('aborted')
    for (const call of this.answer.calls)
      await answerCall(call, { content: resultText.aborted, isError: true }, this.#open)
  }

  async keepFailed(error: unknown): Promise<void> {
    const kind = error instanceof ModelError ? error.kind : 'unknown'
    await this.#appendAttempt({ kind, message: error instanceof Error ? error.message : String(error) })
  }

  /** A call with incomplete input can neither run nor be sent back. The model is told and sends it again. */
  async #keepCutOff(call: ToolUse): Promise<Position> {
    const told = resultText.cutOff(call.name, this.answer.finish === 'length')
    await this.#appendAttempt({ kind: 'cut-off-call', message: `The input of ${call.name} is incomplete.` })
    if (this.#wasTold(told))
      throw new ModelError('invalid-request', `${call.name} was called twice with incomplete input.`)
    const content = [text(told)]
    await this.#open.append({ type: 'message', message: { role: 'custom', content, runId: this.#open.runId } })
    return { openCalls: [], isSettled: false }
  }

  /** The provider paused the turn during its own work, and continues when it is asked again. */
  async #continuePaused(): Promise<Position> {
    const content = [text(resultText.paused)]
    await this.#open.append({ type: 'message', message: { role: 'custom', content, runId: this.#open.runId } })
    return { openCalls: [], isSettled: false }
  }

  #wasTold(message: string): boolean {
    const last = this.#request.messages.at(-1)
    return (
      last?.role === 'custom' && last.content.some((block) => block.type === 'text' && block.text.content === message)
    )
  }

  async #append(stopReason: string): Promise<void> {
    const { item, content, skipped } = this.answer
    const usage = this.#usage()
    const message: Message = {
      role: 'assistant',
      content,
      provider: this.#model.provider,
      model: this.#model.id,
      api: this.#model.api,
      thinkingLevel: this.#request.thinkingLevel,
      stopReason,
      runId: this.#open.runId,
      durationMs: this.#open.deps.clock.now() - this.#startedAt,
      ...(usage && { usage }),
      ...(skipped && { skipped }),
    }
    await this.#open.append({ type: 'message', id: item, message }, this.#reference)
  }

  async #appendAttempt(error: { kind: string; message: string }): Promise<void> {
    const { item, content } = this.answer
    const { runId } = this.#open
    await this.#open.append({ type: 'attempt', attempt: { runId, item, error, content } }, this.#reference)
    const tokens = this.#usage()
    if (!tokens) return
    const { provider, id: model } = this.#model
    await this.#open.append({ type: 'usage', usage: { purpose: 'attempt', provider, model, tokens } })
  }

  #usage(): Message['usage'] {
    const { usage } = this.answer
    const cost = usage && this.#model.costOf?.(usage)
    return cost === undefined ? usage : { ...usage, cost }
  }
}

function isSaid(block: Content): boolean {
  return block.type === 'text' ? block.text.content.trim() !== '' : block.type !== 'reasoning'
}
