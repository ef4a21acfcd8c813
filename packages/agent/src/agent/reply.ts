import { SessionError, textOf, type RunOutcome, type Usage } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { addCounts, askForValue } from '@tapetree/session/util/structured-answer'
import { ValueQueue } from '@tapetree/session/util/value-queue'
import type { RunEnd } from '../run/run-settings.ts'
import type { AgentEvent, AgentListener } from '../run/events.ts'
import type { PermissionRequest } from '../permissions/requests.ts'
import type { Run } from '../run/run-slot.ts'
import { readAnswerSchema, type InputSchema, type ToolInput } from '../tools/tool-input.ts'
import type { PromptOptions, PromptOutcome } from './agent-session-options.ts'
import { agentEventsOf, fromCallbacks, type AgentViewEvent, type StreamCallbacks } from './events.ts'

/** How a prompt was answered. */
export interface Reply<T = unknown> {
  /** The text of the last answer; empty if there is none. */
  text: string
  /** Only with a `schema`: the answer as a value that fits it. Absent if the run did not complete, or no answer fitted. */
  object?: T
  outcome: RunOutcome
  /** Why it did not complete: the kind of the error, `limit:turns` or another limit, or `invalid-object`. */
  reason?: string
  /** The error as a sentence. */
  message?: string
  /** All model calls of the run. */
  usage: Usage
  /** In US dollars, as far as prices are known. */
  cost: number
  /** Null if the prompt was a command and started no run. */
  runId: string | null
}

export interface AskOptions<Schema extends InputSchema = InputSchema>
  extends Omit<PromptOptions, 'whenBusy'>, StreamCallbacks {
  /** Aborts the run. If it has not started yet, nothing is recorded and the outcome is `aborted`. */
  signal?: AbortSignal | undefined
  /** The answer must be JSON that fits: a Standard Schema (zod, valibot, ArkType) or plain JSON Schema. */
  schema?: Schema
  /** During another run: reject with `session-busy`, or wait for its end. Default: `reject`. */
  whenBusy?: 'reject' | 'wait'
}

/** What `stream` yields. The last event is `end`. */
export type ReplyEvent<T = unknown> =
  | Exclude<AgentViewEvent, { type: 'complete' }>
  | { type: 'reasoning_delta'; messageId: string; text: string }
  | { type: 'tool_started'; callId: string; name: string }
  /** The run waits until `answer` is called with its id. */
  | { type: 'permission_request'; request: PermissionRequest }
  | { type: 'end'; reply: Reply<T> }

/** What asking needs of an agent session. */
interface Asked {
  prompt(text: string, options: PromptOptions): Promise<PromptOutcome>
  abort(): Promise<void>
  untilIdle(): Promise<void>
  subscribe(listener: AgentListener): () => void
}

/** What `stream` needs besides. */
interface Heard {
  /** Every event of the run, and of no other. */
  onEvent?: (event: AgentEvent) => void
}

export async function ask<Schema extends InputSchema>(
  agent: Asked,
  prompt: string,
  options: AskOptions<Schema> & Heard,
): Promise<Reply<ToolInput<Schema>>> {
  const { schema, ...rest } = options
  if (!schema) return askOnce(agent, prompt, rest)
  return askForValue(prompt, { reader: readAnswerSchema(schema), ask: (text) => askOnce(agent, text, rest) })
}

/** Yields what happens while a prompt is answered. Leaving the loop early aborts the run. */
export async function* stream<Schema extends InputSchema>(
  agent: Asked,
  prompt: string,
  options: AskOptions<Schema>,
): AsyncGenerator<ReplyEvent<ToolInput<Schema>>, void> {
  const events = new ValueQueue<ReplyEvent<ToolInput<Schema>>>()
  const leaving = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, leaving.signal]) : leaving.signal
  const onEvent = (event: AgentEvent): void => {
    for (const each of replyEventsOf(event)) events.push(each)
  }
  const asked = ask(agent, prompt, { ...options, signal, onEvent }).then(
    (reply) => {
      events.push({ type: 'end', reply })
      events.end()
    },
    (error: unknown) => events.fail(error),
  )
  try {
    yield* events
  } finally {
    leaving.abort()
    await asked
  }
}

/** The reply of a run that has started, once the session is idle again. `tally` has heard all lines of the run. */
export async function replyOf({ id, done }: Pick<Run, 'id' | 'done'>, tally: RunTally): Promise<Reply<never>> {
  const last = await done
  // Queued messages start runs of their own before `done` resolves.
  return { ...tally.of(id), ...(tally.endOf(id) ?? last) }
}

async function askOnce(
  agent: Asked,
  prompt: string,
  options: Omit<AskOptions, 'schema'> & Heard,
): Promise<Reply<never>> {
  const { signal, whenBusy = 'reject', onEvent, ...rest } = options
  const tally = new RunTally()
  const tell = fromCallbacks(rest)
  const ours = new EventsOfOneRun((event) => {
    tell(event)
    onEvent?.(event)
  })
  const stop = agent.subscribe((event) => {
    tally.hear(event)
    ours.hear(event)
  })
  const abort = (): void => void agent.abort().catch(() => undefined)
  try {
    const outcome = await startWhenFree()
    if (!outcome) return { text: '', outcome: 'aborted', usage: {}, cost: 0, runId: null }
    if (outcome.type === 'handled')
      return { text: outcome.say ?? '', outcome: 'completed', usage: {}, cost: 0, runId: null }
    if (outcome.type !== 'started') throw new TypeError('A prompt that is rejected when busy is never queued.')
    ours.claim(outcome.run.id)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    return await replyOf(outcome.run, tally)
  } finally {
    signal?.removeEventListener('abort', abort)
    stop()
  }

  async function startWhenFree(): Promise<PromptOutcome | undefined> {
    for (;;) {
      if (signal?.aborted) return undefined
      try {
        return await agent.prompt(prompt, { ...rest, whenBusy: 'reject' })
      } catch (error) {
        ours.forget()
        if (whenBusy === 'reject' || !(error instanceof SessionError && error.code === 'session-busy')) throw error
        await untilIdleOrAborted(agent, signal)
      }
    }
  }
}

/** Passes on the events of one run. Its id is known only after it has started, so they are held until then. */
class EventsOfOneRun {
  readonly #tell: (event: AgentEvent) => void
  #current: string | undefined
  #claimed: string | undefined
  #held: { runId: string; event: AgentEvent }[] = []

  constructor(tell: (event: AgentEvent) => void) {
    this.#tell = tell
  }

  hear(event: AgentEvent): void {
    if (event.type === 'line' && event.committed.line.type === 'run_start')
      this.#current = event.committed.line.runStart.runId
    if (this.#current === undefined) return
    if (this.#claimed === undefined) this.#held.push({ runId: this.#current, event })
    else if (this.#claimed === this.#current) this.#tell(event)
  }

  claim(runId: string): void {
    this.#claimed = runId
    for (const held of this.#held.splice(0)) if (held.runId === runId) this.#tell(held.event)
  }

  /** The run that has started is not ours. */
  forget(): void {
    this.#current = undefined
    this.#held = []
  }
}

async function untilIdleOrAborted(agent: Asked, signal: AbortSignal | undefined): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>()
  const onAbort = (): void => resolve()
  signal?.addEventListener('abort', onAbort)
  if (signal?.aborted) onAbort()
  try {
    await Promise.race([agent.untilIdle(), aborted])
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Adds up the lines of each run. Lines are in order, and a session has one run at a time. */
export class RunTally {
  readonly #runs = new Map<string, { text: string; usage: Usage }>()
  readonly #ends = new Map<string, RunEnd>()
  #current: string | undefined
  #error: string | undefined

  hear(event: AgentEvent): void {
    if (event.type === 'line') this.#add(event.committed.line)
  }

  of(runId: string): { text: string; usage: Usage; cost: number } {
    const { text = '', usage = {} } = this.#runs.get(runId) ?? {}
    return { text, usage, cost: usage.cost ?? 0 }
  }

  endOf(runId: string): RunEnd | undefined {
    return this.#ends.get(runId)
  }

  #add(line: Line): void {
    switch (line.type) {
      case 'run_start':
        this.#current = line.runStart.runId
        this.#error = undefined
        break
      case 'message': {
        const { message } = line
        if (message.role !== 'assistant') break
        this.#change(({ usage }) => ({ text: textOf(message), usage: addCounts(usage, message.usage ?? {}) }))
        break
      }
      case 'usage':
        this.#change((run) => ({ ...run, usage: addCounts(run.usage, line.usage.tokens) }))
        break
      case 'error':
        this.#error = line.error.message
        break
      case 'run_end': {
        const { runId, outcome, reason } = line.runEnd
        const message = outcome === 'failed' ? this.#error : undefined
        this.#ends.set(runId, { runId, outcome, ...(reason !== undefined && { reason }), ...(message && { message }) })
        break
      }
      default:
    }
  }

  #change(next: (run: { text: string; usage: Usage }) => { text: string; usage: Usage }): void {
    const runId = this.#current ?? ''
    this.#runs.set(runId, next(this.#runs.get(runId) ?? { text: '', usage: {} }))
  }
}

function replyEventsOf(event: AgentEvent): Exclude<ReplyEvent<never>, { type: 'end' }>[] {
  if (event.type === 'delta' && event.kind === 'reasoning')
    return [{ type: 'reasoning_delta', messageId: event.item, text: event.text }]
  if (event.type === 'line') {
    const { line } = event.committed
    if (line.type === 'tool_start')
      return [{ type: 'tool_started', callId: line.toolStart.callId, name: line.toolStart.name }]
    if (line.type === 'permission_request') return [{ type: 'permission_request', request: line.permissionRequest }]
  }
  return agentEventsOf(event).filter((each) => each.type !== 'complete')
}
