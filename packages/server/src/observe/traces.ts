import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'
import type { DriverEvent } from '../live/driver.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { Message, Content, ToolResult, Usage } from '@tapetree/session'
import type { Line, RunStartRecord } from '@tapetree/session/format'
import { modelInUse } from './model-call.ts'
import { remoteContext } from './trace-context.ts'

export interface TraceOptions {
  /** Default: the provider that the process has registered; without one nothing is traced. */
  provider?: TracerProvider
  /** Whether spans include content. Off by default. */
  hasContent?: boolean
}

/**
 * Spans of the GenAI conventions: `invoke_agent` for a run, and in it `chat` for each model call and
 * `execute_tool` for each tool. Built from log lines and driver events, so foreign agents are traced too. A run
 * that a request with a `traceparent` started belongs to that trace. Use it as one of the `observers` of live
 * sessions.
 */
export function tracing(options: TraceOptions = {}): (live: LiveSession) => () => void {
  const { provider = trace.getTracerProvider(), hasContent = false } = options
  const tracer = provider.getTracer('@tapetree/server')
  return (live) => {
    const spans = new SessionSpans(live, tracer, hasContent)
    const stops = [
      live.session.subscribe(({ line }) => spans.take(line)),
      live.driver.subscribe((event) => spans.hear(event)),
    ]
    return () => {
      for (const stop of stops) stop()
      spans.close()
    }
  }
}

interface TracedRun {
  runId: string
  span: Span
  context: Context
  tools: Map<string, Span>
}

class SessionSpans {
  readonly #live: LiveSession
  readonly #tracer: Tracer
  readonly #hasContent: boolean
  #run: TracedRun | undefined
  /** Time of the line that the next model call answers: the call cannot have started before it. */
  #lastAt = 0
  /** When the first text of each answer in flight arrived. */
  #firstWordAt = new Map<string, number>()
  #prompt: Message | undefined
  /** The input of each call in the last answer, if content is included. */
  #inputs = new Map<string, unknown>()
  /** The trace of each run and queued message that a traced command caused, by id. */
  readonly #traces = new Map<string, string>()

  constructor(live: LiveSession, tracer: Tracer, hasContent: boolean) {
    this.#live = live
    this.#tracer = tracer
    this.#hasContent = hasContent
  }

  take(line: Line): void {
    const at = Date.parse(line.timestamp)
    this.#rememberTrace(line)
    switch (line.type) {
      case 'message':
        this.#takeMessage(line.id, line.message, at)
        break
      case 'run_start':
        this.#start(line.runStart, at)
        break
      case 'tool_start':
        this.#startTool(line.toolStart, at)
        break
      case 'attempt':
        this.#chat({ startTime: this.#lastAt, endTime: at }, line.attempt.error?.kind ?? 'unknown', {})
        break
      case 'run_end': {
        const { outcome, reason } = line.runEnd
        this.#end(at, outcome === 'failed' ? (reason ?? 'failed') : undefined, outcome)
        break
      }
      default:
        return
    }
    this.#lastAt = at
  }

  hear(event: DriverEvent): void {
    if (event.type === 'auto_retry_end') this.#lastAt = this.#live.now
    if (event.type !== 'delta' || event.kind === 'tool_output' || this.#firstWordAt.has(event.item)) return
    this.#firstWordAt.set(event.item, this.#live.now)
  }

  close(): void {
    this.#end(this.#live.now, undefined, 'closed')
  }

  /** The effect of a command is one line: the message of a new run, a queued message, or the start of a run. */
  #rememberTrace(line: Line): void {
    const id =
      line.type === 'message'
        ? line.message.runId
        : line.type === 'run_start'
          ? line.runStart.runId
          : line.type === 'submission' && line.submission.action === 'add'
            ? line.submission.id
            : undefined
    const traceparent = 'cause' in line && line.cause ? this.#live.traceparentOf(line.cause.cmd) : undefined
    if (id === undefined || traceparent === undefined) return
    this.#traces.set(id, traceparent)
    const [oldest] = this.#traces.keys()
    if (this.#traces.size > maxTraces && oldest !== undefined) this.#traces.delete(oldest)
  }

  #start({ runId, submissionId }: RunStartRecord['runStart'], at: number): void {
    this.#end(at, undefined, 'superseded')
    const attributes = { ...this.#common('invoke_agent'), [gen.agentName]: 'tapetree', 'tapetree.run.id': runId }
    const content = this.#hasContent && this.#prompt ? inputAttributes(this.#prompt) : {}
    const span = this.#tracer.startSpan(
      'invoke_agent tapetree',
      { kind: SpanKind.INTERNAL, startTime: at, attributes: { ...attributes, ...content } },
      remoteContext(this.#traces.get(runId) ?? this.#traces.get(submissionId ?? '')),
    )
    this.#traces.delete(runId)
    if (submissionId !== undefined) this.#traces.delete(submissionId)
    this.#run = { runId, span, context: trace.setSpan(ROOT_CONTEXT, span), tools: new Map() }
  }

  #takeMessage(item: string, message: Message, at: number): void {
    if (message.role === 'user') this.#prompt = message
    if (message.role === 'assistant') {
      const startTime = message.durationMs === undefined ? this.#lastAt : at - message.durationMs
      const firstWordAt = this.#firstWordAt.get(item)
      this.#firstWordAt.delete(item)
      this.#chat({ startTime, endTime: at }, undefined, {
        [gen.responseId]: item,
        ...(message.model !== undefined && { [gen.responseModel]: message.model }),
        ...(message.stopReason !== undefined && { [gen.finishReasons]: [message.stopReason] }),
        ...(firstWordAt !== undefined && { [gen.timeToFirstChunk]: Math.max(0, firstWordAt - startTime) / 1000 }),
        ...usageAttributes(message.usage),
        ...(this.#hasContent && outputAttributes(message)),
      })
    }
    if (this.#hasContent && message.role === 'assistant') this.#inputs = inputsOf(message)
    for (const block of message.content) {
      if (block.type !== 'tool_result') continue
      const { toolUseId, isError } = block.toolResult
      const span = this.#run?.tools.get(toolUseId)
      if (!span) continue
      this.#run?.tools.delete(toolUseId)
      if (this.#hasContent) span.setAttributes(resultAttributes(block.toolResult))
      if (isError) fail(span, 'tool_error')
      span.end(at)
    }
  }

  #chat(times: { startTime: number; endTime: number }, error: string | undefined, more: Attributes): void {
    const attributes: Attributes = { ...this.#common('chat'), ...more, [gen.stream]: true }
    const name = `chat ${String(attributes[gen.requestModel])}`
    const context = this.#run?.context ?? ROOT_CONTEXT
    const span = this.#tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, startTime: times.startTime, attributes },
      context,
    )
    if (error !== undefined) fail(span, error)
    span.end(times.endTime)
  }

  #startTool(start: { callId: string; name: string; input?: Record<string, unknown> }, at: number): void {
    if (!this.#run) return
    const { tools, context } = this.#run
    const attributes = {
      ...this.#conversation('execute_tool'),
      ...callAttributes(start),
      ...(this.#hasContent && argumentAttributes(start.input ?? this.#inputs.get(start.callId))),
    }
    const options = { kind: SpanKind.INTERNAL, startTime: at, attributes }
    tools.set(start.callId, this.#tracer.startSpan(`execute_tool ${start.name}`, options, context))
  }

  #end(at: number, error: string | undefined, outcome: string): void {
    if (!this.#run) return
    const { span, tools } = this.#run
    for (const tool of tools.values()) tool.end(at)
    span.setAttribute('tapetree.run.outcome', outcome)
    if (error !== undefined) fail(span, error)
    span.end(at)
    this.#run = undefined
    this.#firstWordAt = new Map()
  }

  #common(operation: string): Attributes {
    const { provider, model } = modelInUse(this.#live.driver.config())
    return { ...this.#conversation(operation), [gen.providerName]: providerName(provider), [gen.requestModel]: model }
  }

  #conversation(operation: string): Attributes {
    return { [gen.operationName]: operation, [gen.conversationId]: this.#live.session.id }
  }
}

/** More messages are seldom queued; the oldest are forgotten, and their runs start traces of their own. */
const maxTraces = 1000

/** The conventions have their own names for well-known providers. The first match counts; other names stay. */
const wellKnownProviders: readonly [pattern: RegExp, name: string][] = [
  [/^(?:amazon-)?bedrock\b/, 'aws.bedrock'],
  [/^azure\b/, 'azure.ai.openai'],
  [/^(?:google[.-])?vertex\b/, 'gcp.vertex_ai'],
  [/^google\b/, 'gcp.gemini'],
  [/^mistral\b/, 'mistral_ai'],
  [/^xai\b/, 'x_ai'],
  [/^anthropic\b/, 'anthropic'],
  [/^openai(?=\.|$)/, 'openai'],
]

function providerName(provider: string): string {
  return wellKnownProviders.find(([pattern]) => pattern.test(provider))?.[1] ?? provider
}

function inputsOf({ content }: Message): Map<string, unknown> {
  return new Map(
    content.flatMap((block) => (block.type === 'tool_use' ? [[block.toolUse.id, block.toolUse.input] as const] : [])),
  )
}

/** The kind of an error, never its text, which may quote content. */
function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/** Names of the GenAI conventions. Copied: the package that defines them may rename them in a minor version. */
const gen = {
  operationName: 'gen_ai.operation.name',
  providerName: 'gen_ai.provider.name',
  conversationId: 'gen_ai.conversation.id',
  agentName: 'gen_ai.agent.name',
  requestModel: 'gen_ai.request.model',
  stream: 'gen_ai.request.stream',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheCreationTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  callId: 'gen_ai.tool.call.id',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
} as const

function usageAttributes(usage: Usage = {}): Attributes {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    ...(inputTokens !== undefined && { [gen.inputTokens]: inputTokens }),
    ...(outputTokens !== undefined && { [gen.outputTokens]: outputTokens }),
    ...(cacheReadTokens !== undefined && { [gen.cacheReadTokens]: cacheReadTokens }),
    ...(cacheWriteTokens !== undefined && { [gen.cacheCreationTokens]: cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { [gen.reasoningTokens]: reasoningTokens }),
  }
}

function callAttributes({ name, callId }: { name: string; callId: string }): Attributes {
  return { [gen.toolName]: name, [gen.toolType]: 'function', [gen.callId]: callId }
}

function argumentAttributes(input: unknown): Attributes {
  return { [gen.callArguments]: JSON.stringify(input ?? {}) }
}

function inputAttributes(message: Message): Attributes {
  return { [gen.inputMessages]: JSON.stringify([{ role: message.role, parts: partsOf(message.content) }]) }
}

function outputAttributes({ role, content, stopReason }: Message): Attributes {
  return { [gen.outputMessages]: JSON.stringify([{ role, parts: partsOf(content), finish_reason: stopReason }]) }
}

function resultAttributes({ content }: ToolResult): Attributes {
  return { [gen.callResult]: typeof content === 'string' ? content : JSON.stringify(partsOf(content)) }
}

/** Images are left out of traces. */
function partsOf(content: readonly Content[]): unknown[] {
  return content.flatMap((block): unknown[] => {
    switch (block.type) {
      case 'text':
        return [{ type: 'text', content: block.text.content }]
      case 'reasoning':
        return [{ type: 'reasoning', content: block.reasoning.text }]
      case 'tool_use': {
        const { id, name, input } = block.toolUse
        return [{ type: 'tool_call', id, name, arguments: input }]
      }
      case 'tool_result':
        return [{ type: 'tool_call_response', id: block.toolResult.toolUseId, response: block.toolResult.content }]
      case 'image':
        return []
      default:
        block satisfies never
        return []
    }
  })
}
