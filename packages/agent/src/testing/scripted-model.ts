import { createHash } from 'node:crypto'
import type { Usage } from '@tapetree/session'
import { z } from 'zod'
import type { Clock } from '@tapetree/session/util/wait'
import {
  ModelError,
  type FinishReason,
  type Model,
  type ModelCall,
  type ModelLimits,
  type ModelPart,
  type ModelRequest,
  type ModelErrorKind,
} from '../models/model.ts'
import { defineTool, type Tool, type ToolOutput } from '../tools/tool.ts'

/** The next action of a scripted model. */
export type ScriptEvent =
  | { type: 'text_delta'; text: string }
  | { type: 'reasoning_start' }
  | { type: 'reasoning_delta'; text: string }
  | { type: 'reasoning_end'; signature?: string }
  | { type: 'tool_input_start'; callId: string; name: string }
  | { type: 'tool_input_delta'; text: string }
  | { type: 'tool_call'; callId: string; name: string; input: string }
  /** The answer of the scripted tool to that call. */
  | { type: 'tool_result'; callId: string; output: ToolOutput }
  | { type: 'usage'; usage: Usage }
  | { type: 'error'; error: Error }
  /** The user stops the run at this point. */
  | { type: 'cancel' }
  | { type: 'wait'; ms: number }
  /** Arbitrary work of a test at this point. */
  | { type: 'do'; work: () => unknown }
  | { type: 'finish'; reason: FinishReason }
  /** The next model call begins here. */
  | { type: 'step_boundary' }

/** Builds a script, event by event. Each `step()` ends one model call; a call without `finish` ends by itself. */
export class ScriptBuilder {
  readonly #events: ScriptEvent[] = []

  text(...chunks: string[]): this {
    return this.#add(...chunks.map((text): ScriptEvent => ({ type: 'text_delta', text })))
  }

  reasoning(text: string, signature?: string): this {
    return this.reasoningStart().reasoningDelta(text).reasoningEnd(signature)
  }

  reasoningStart(): this {
    return this.#add({ type: 'reasoning_start' })
  }

  reasoningDelta(text: string): this {
    return this.#add({ type: 'reasoning_delta', text })
  }

  reasoningEnd(signature?: string): this {
    return this.#add({ type: 'reasoning_end', ...(signature !== undefined && { signature }) })
  }

  /** The call is announced without its input. */
  toolStart(callId: string, name: string): this {
    return this.#add({ type: 'tool_input_start', callId, name })
  }

  toolInput(text: string): this {
    return this.#add({ type: 'tool_input_delta', text })
  }

  /** A complete call. A string is sent unchanged, JSON or not. */
  toolCall(callId: string, name: string, input: Record<string, unknown> | string = {}): this {
    return this.#add({
      type: 'tool_call',
      callId,
      name,
      input: typeof input === 'string' ? input : JSON.stringify(input),
    })
  }

  toolResult(callId: string, output: string | ToolOutput): this {
    return this.#add({ type: 'tool_result', callId, output: typeof output === 'string' ? { content: output } : output })
  }

  usage(usage: Usage): this {
    return this.#add({ type: 'usage', usage })
  }

  error(kind: ModelErrorKind | Error, message = `scripted ${String(kind)}`, options?: { retryAfterMs?: number }): this {
    return this.#add({ type: 'error', error: kind instanceof Error ? kind : new ModelError(kind, message, options) })
  }

  cancel(): this {
    return this.#add({ type: 'cancel' })
  }

  wait(ms: number): this {
    return this.#add({ type: 'wait', ms })
  }

  do(work: () => unknown): this {
    return this.#add({ type: 'do', work })
  }

  finish(reason: FinishReason): this {
    return this.#add({ type: 'finish', reason })
  }

  step(): this {
    return this.#add({ type: 'step_boundary' })
  }

  build(): ScriptEvent[] {
    return [...this.#events]
  }

  #add(...events: ScriptEvent[]): this {
    this.#events.push(...events)
    return this
  }
}

export function script(): ScriptBuilder {
  return new ScriptBuilder()
}

export interface ScriptedModelOptions {
  provider?: string
  id?: string
  limits?: ModelLimits
  clock?: Clock
  /** The effect of `cancel`; usually aborts the controller of the run. */
  onCancel?: () => void
  costOf?: (usage: Usage) => number
  /** Answers a call without steps in the script; without it such a call is an error of the test. */
  otherwise?: (request: ModelRequest) => ScriptEvent[] | ScriptBuilder
}

/** A model that follows its script and records every request. */
export class ScriptedModel implements Model {
  readonly provider: string
  readonly id: string
  readonly api = 'scripted'
  readonly limits: ModelLimits
  readonly requests: ModelRequest[] = []
  readonly #options: ScriptedModelOptions
  readonly #steps: ScriptEvent[][]
  readonly #results = new Map<string, ToolOutput>()

  constructor(events: ScriptEvent[] | ScriptBuilder = [], options: ScriptedModelOptions = {}) {
    this.provider = options.provider ?? 'scripted'
    this.id = options.id ?? 'scripted-1'
    this.limits = options.limits ?? { contextTokens: 200_000, outputTokens: 8192 }
    this.#options = options
    this.#steps = stepsOf(events)
    for (const event of this.#steps.flat()) this.#noteResult(event)
  }

  /** Steps that have not been used. */
  get stepsLeft(): number {
    return this.#steps.length
  }

  costOf(usage: Usage): number | undefined {
    return this.#options.costOf?.(usage)
  }

  prepare(request: ModelRequest): ModelCall {
    const sha256 = createHash('sha256').update(JSON.stringify(request)).digest('hex')
    return {
      reference: { sha256, adapter: 'scripted', adapterVersion: '1' },
      stream: (signal) => this.#play(request, signal),
    }
  }

  /** A tool with this name that answers with the `toolResult` of the script, or with "ok". */
  tool(name: string, options: Partial<Pick<Tool, 'readOnly' | 'replay'>> = {}): Tool {
    return defineTool({
      name,
      description: `scripted ${name}`,
      schema: z.looseObject({}),
      access: () => [],
      run: (_, { callId }) => Promise.resolve(this.#results.get(callId) ?? { content: 'ok' }),
      ...options,
    })
  }

  async *#play(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart> {
    this.requests.push(request)
    const step = this.#steps.shift() ?? this.#otherwise(request)
    const parts = new PartNumbers()
    let isFinished = false
    let hasCalls = false
    for (const event of step) {
      signal.throwIfAborted()
      if (event.type === 'error') throw event.error
      if (event.type === 'wait') await this.#options.clock?.wait(event.ms, signal)
      if (event.type === 'do') await event.work()
      if (event.type === 'cancel') this.#options.onCancel?.()
      signal.throwIfAborted()
      hasCalls ||= event.type === 'tool_call'
      isFinished ||= event.type === 'finish'
      const part = parts.partOf(event)
      if (part) yield part
    }
    if (!isFinished) yield { type: 'finish', reason: hasCalls ? 'tool-calls' : 'stop' }
  }

  #otherwise(request: ModelRequest): ScriptEvent[] {
    const { otherwise } = this.#options
    if (!otherwise) throw new ModelError('invalid-request', 'The script has no step for this request.')
    const events = stepsOf(otherwise(request))[0] ?? []
    for (const event of events) this.#noteResult(event)
    return events
  }

  #noteResult(event: ScriptEvent): void {
    if (event.type === 'tool_result') this.#results.set(event.callId, event.output)
  }
}

export function scriptedModel(events?: ScriptEvent[] | ScriptBuilder, options?: ScriptedModelOptions): ScriptedModel {
  return new ScriptedModel(events, options)
}

function stepsOf(events: ScriptEvent[] | ScriptBuilder): ScriptEvent[][] {
  const all = events instanceof ScriptBuilder ? events.build() : events
  if (all.length === 0) return []
  const steps: ScriptEvent[][] = [[]]
  for (const event of all) {
    if (event.type === 'step_boundary') steps.push([])
    else steps.at(-1)?.push(event)
  }
  // A boundary at the end closes the last step and opens none.
  if (steps.at(-1)?.length === 0) steps.pop()
  return steps
}

/** Numbers the content blocks: adjacent text belongs to the same block. */
class PartNumbers {
  #next = 0
  #open: { type: 'text' | 'reasoning' | 'call'; part: number } | undefined

  partOf(event: ScriptEvent): ModelPart | undefined {
    switch (event.type) {
      case 'text_delta':
        return { type: 'text_delta', part: this.#partFor('text'), text: event.text }
      case 'reasoning_start':
        this.#begin('reasoning')
        return undefined
      case 'reasoning_delta':
        return { type: 'reasoning_delta', part: this.#partFor('reasoning'), text: event.text }
      case 'reasoning_end': {
        const part = this.#partFor('reasoning')
        this.#open = undefined
        return { type: 'reasoning_end', part, ...(event.signature !== undefined && { signature: event.signature }) }
      }
      case 'tool_input_start': {
        const { callId, name } = event
        return { type: 'tool_input_start', part: this.#begin('call'), callId, name }
      }
      case 'tool_input_delta':
        return { type: 'tool_input_delta', part: this.#partFor('call'), text: event.text }
      case 'tool_call': {
        const part = this.#partFor('call')
        this.#open = undefined
        return { ...event, part }
      }
      case 'usage':
      case 'finish':
        return event
      default:
        return undefined
    }
  }

  #partFor(type: 'text' | 'reasoning' | 'call'): number {
    return this.#open?.type === type ? this.#open.part : this.#begin(type)
  }

  #begin(type: 'text' | 'reasoning' | 'call'): number {
    const part = this.#next++
    this.#open = { type, part }
    return part
  }
}
