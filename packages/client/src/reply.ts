import type { Usage } from '@tapetree/session'
import { askForValue, type SchemaReader, type StandardSchema } from '@tapetree/session/util/structured-answer'
import { ValueQueue } from '@tapetree/session/util/value-queue'
import type { Transcript } from '@tapetree/session/view'
import { z } from 'zod'
import { localProblem, ProblemError } from './problem-error.ts'
import type { PromptResult } from './rest-values.ts'
import type {
  AskOptions,
  ConnectionStatus,
  PromptCommandOptions,
  Reply,
  ReplyEvent,
  SessionChange,
} from './session-handle.ts'
import type { StateValues } from './state-values.ts'

/** What asking needs of a session handle. */
export interface Asked {
  readonly transcript: Transcript
  readonly status: ConnectionStatus
  state(key: 'run'): StateValues['run'] | undefined
  subscribe(listener: (change: SessionChange) => void): () => void
  prompt(text: string, options?: PromptCommandOptions): Promise<PromptResult | undefined>
  abort(runId?: string): Promise<void>
}

export async function ask<T>(handle: Asked, text: string, options: AskOptions<T>): Promise<Reply<T>> {
  return follow({ handle, text, options, emit: () => undefined, left: undefined })
}

export async function* stream<T>(
  handle: Asked,
  text: string,
  options: AskOptions<T>,
): AsyncGenerator<ReplyEvent<T>, void> {
  const events = new ValueQueue<ReplyEvent<T>>()
  const left = new AbortController()
  void follow({ handle, text, options, emit: (event) => events.push(event), left: left.signal }).then(
    (reply) => {
      events.push({ type: 'end', reply })
      events.end()
    },
    (error: unknown) => events.fail(error),
  )
  try {
    yield* events
  } finally {
    left.abort()
  }
}

/** Resolves when no run is open and no queued message is about to start one. Rejects if the handle closes first. */
export async function untilIdle(handle: Asked, signal?: AbortSignal): Promise<void> {
  await until(handle, () => isIdle(handle), signal)
}

/** The log and the state arrive separately. An interrupted run is open in the log; the state says that nothing works on it. */
function isIdle(handle: Asked): boolean {
  const { run } = handle.transcript
  const state = handle.state('run')
  return state?.isBusy === false && (run === null || state.runId === run.runId)
}

interface Following<T = unknown> {
  handle: Asked
  text: string
  options: AskOptions<T>
  emit: (event: ReplyEvent<never>) => void
  /** Aborted when the events have no reader any more. The run continues. */
  left: AbortSignal | undefined
}

async function follow<T>({ text, options, ...rest }: Following<T>): Promise<Reply<T>> {
  const { schema, ...plain } = options
  const followOne = (prompt: string): Promise<Reply<never>> => followRun({ ...rest, text: prompt, options: plain })
  return schema ? askForValue(text, { reader: readSchema(schema), ask: followOne }) : followOne(text)
}

function readSchema<T>(schema: StandardSchema<T>): SchemaReader<T> {
  const { vendor, jsonSchema, validate } = schema['~standard']
  if (!jsonSchema) throw new TypeError(`The schema of ${vendor} provides no JSON Schema.`)
  return {
    jsonSchema: jsonSchema.input({ target: 'draft-2020-12' }),
    parse: (given) => {
      const result = validate(given)
      if ('then' in result) throw new TypeError('The schema must not validate asynchronously.')
      if (result.issues) return `The answer is not valid. ${z.prettifyError({ issues: result.issues })}`
      return { input: result.value }
    },
  }
}

async function followRun({ handle, text, options, emit, left }: Following): Promise<Reply<never>> {
  const { signal, whenBusy = 'reject', ...message } = options
  // The usage of the run is the difference to the transcript before it.
  await until(handle, () => handle.transcript.seq > 0, signal)
  const watch = new RunWatch(handle.transcript)
  const stop = handle.subscribe(() => watch.take(handle.transcript))
  let runId: string | null = null
  const abort = (): void => void handle.abort(runId ?? undefined).catch(() => undefined)
  try {
    const started = await startWhenFree()
    if (!started) return { text: '', outcome: 'aborted', usage: {}, cost: 0, runId: null }
    if (started.outcome === 'handled')
      return { text: started.say ?? '', outcome: 'completed', usage: {}, cost: 0, runId: null }
    runId = started.runId
    if (runId === null) throw new TypeError('A prompt that is rejected when busy is never queued.')
    watch.claim(runId, emit)
    signal?.addEventListener('abort', abort)
    if (signal?.aborted) abort()
    await until(handle, () => watch.hasEnded && !isClosing(), left)
    return watch.reply()
  } finally {
    signal?.removeEventListener('abort', abort)
    stop()
  }

  /** The run has ended, but the server does not accept the next prompt yet. */
  function isClosing(): boolean {
    return handle.transcript.run === null && handle.state('run')?.isBusy === true
  }

  async function startWhenFree(): Promise<Exclude<PromptResult, { outcome: 'steered' | 'queued' }> | undefined> {
    for (let hasRetried = false; ; hasRetried = true) {
      if (signal?.aborted) return undefined
      try {
        const result = await handle.prompt(text, { ...message, whenBusy: 'reject' })
        // Undefined if the server restarted before it could answer: the run is the one that it started.
        return (result ?? watch.newestRun()) as Exclude<PromptResult, { outcome: 'steered' | 'queued' }>
      } catch (error) {
        if (!(error instanceof ProblemError && error.type === 'session-busy')) throw error
        // The end of the previous run may have arrived before the server was ready for the next.
        const mayRetry = whenBusy === 'wait' || (!hasRetried && handle.transcript.run === null)
        if (!mayRetry) throw error
        await untilIdle(handle, signal)
      }
    }
  }
}

/** Resolves as soon as the condition holds, or the signal aborts. Rejects if the handle closes first. */
async function until(handle: Asked, holds: () => boolean, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = (): void => {
    if (holds() || signal?.aborted) resolve()
    else if (handle.status.type === 'closed')
      reject(localProblem('closed', `The session handle is closed (${handle.status.reason}).`))
  }
  const stop = handle.subscribe(look)
  signal?.addEventListener('abort', look)
  look()
  try {
    await promise
  } finally {
    stop()
    signal?.removeEventListener('abort', look)
  }
}

/** Reads the events and the end of each run from successive transcripts. The id of our run is known only after it began. */
class RunWatch {
  #last: Transcript
  /** A run that was open before the prompt is not ours, so it is not watched. */
  #current: WatchedRun | undefined
  #claimed: { runId: string; emit: (event: ReplyEvent<never>) => void } | undefined
  readonly #runs = new Map<string, WatchedRun>()

  constructor(transcript: Transcript) {
    this.#last = transcript
  }

  take(transcript: Transcript): void {
    const before = this.#last
    this.#last = transcript
    const known = [before.run?.runId, before.lastRun?.runId, ...this.#runs.keys()]
    // A run may begin and end between two transcripts, for example during a reconnect.
    for (const begun of [transcript.lastRun, transcript.run]) {
      if (begun && !known.includes(begun.runId)) this.#begin(begun.runId, before)
      if (transcript !== before) this.#current?.take(transcript, before)
      if (this.#current && transcript.run?.runId !== this.#current.runId) {
        this.#current.end(transcript)
        this.#current = undefined
      }
    }
  }

  claim(runId: string, emit: (event: ReplyEvent<never>) => void): void {
    this.#claimed = { runId, emit }
    this.#ours?.deliver(emit)
  }

  get hasEnded(): boolean {
    return this.#ours?.reply !== undefined
  }

  reply(): Reply<never> {
    const reply = this.#ours?.reply
    if (reply && reply !== 'missed') return reply
    throw endMissed()
  }

  newestRun(): { outcome: 'started'; runId: string } {
    const runId = [...this.#runs.keys()].at(-1)
    // The server no longer knows which run the prompt started.
    if (runId === undefined) throw endMissed()
    return { outcome: 'started', runId }
  }

  #begin(runId: string, before: Transcript): void {
    this.#current = new WatchedRun(runId, before)
    this.#runs.set(runId, this.#current)
    if (this.#claimed?.runId === runId) this.#current.deliver(this.#claimed.emit)
  }

  get #ours(): WatchedRun | undefined {
    return this.#claimed && this.#runs.get(this.#claimed.runId)
  }
}

class WatchedRun {
  readonly runId: string
  /** `missed`: another run had ended when the transcript arrived. */
  reply: Reply<never> | 'missed' | undefined
  readonly #before: Transcript
  #emit: ((event: ReplyEvent<never>) => void) | undefined
  /** Held until the run is known to be ours. */
  #held: ReplyEvent<never>[] = []
  /** How many code units of each text part were yielded, by entry and part. */
  readonly #told = new Map<string, number>()
  readonly #seen = new Set<string>()

  constructor(runId: string, before: Transcript) {
    this.runId = runId
    this.#before = before
  }

  deliver(emit: (event: ReplyEvent<never>) => void): void {
    this.#emit = emit
    for (const event of this.#held.splice(0)) emit(event)
  }

  take(transcript: Transcript, before: Transcript): void {
    if (transcript.inFlight !== before.inFlight) this.#takeLive(transcript)
    if (transcript.path !== before.path) this.#takePath(transcript)
    for (const request of transcript.permissions)
      if (request.runId === this.runId && this.#isFirst(`request ${request.requestId}`))
        this.#tell({ type: 'permission_request', request })
  }

  end({ lastRun, lastError, usage, path }: Transcript): void {
    if (this.reply) return
    if (lastRun?.runId !== this.runId) {
      this.reply = 'missed'
      return
    }
    const { outcome, reason } = lastRun
    const spent = difference(usage, this.#before.usage)
    const answer = this.#items({ path }).findLast((item) => item.type === 'assistant')
    this.reply = {
      text: answer ? answer.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') : '',
      outcome,
      ...(reason !== undefined && { reason }),
      ...(outcome === 'failed' && lastError && { message: lastError.message }),
      usage: spent,
      cost: spent.cost ?? 0,
      runId: this.runId,
    }
  }

  #takeLive({ inFlight }: Transcript): void {
    for (const { item, run, parts } of inFlight.values()) {
      if (run !== undefined && run !== this.runId) continue
      for (const { part, kind, off, text } of parts)
        if (kind === 'text' || kind === 'reasoning') this.#tellText({ item, part, kind, off, text })
    }
  }

  #takePath(transcript: Transcript): void {
    for (const item of this.#items(transcript)) {
      if (item.type !== 'assistant') continue
      for (const [index, part] of item.parts.entries()) {
        if (part.type === 'text' || part.type === 'reasoning')
          this.#tellText({ item: item.id, part: index, kind: part.type, off: 0, text: part.text })
        if (part.type !== 'tool_call') continue
        const { callId, name, input, status, result } = part
        const call = `${item.id} ${callId}`
        if (this.#isFirst(`call ${call}`))
          this.#tell({ type: 'tool_call', messageId: item.id, call: { id: callId, name, input } })
        if (status === 'running' && this.#isFirst(`start ${call}`)) this.#tell({ type: 'tool_started', callId, name })
        if (!result || !this.#isFirst(`result ${call}`)) continue
        const { entryId: messageId, isError, content } = result
        const told = { toolUseId: callId, isError, content: typeof content === 'string' ? content : [...content] }
        this.#tell({ type: 'tool_result', messageId, result: told })
      }
    }
  }

  /** The items of the run, oldest first. */
  #items({ path: { items } }: Pick<Transcript, 'path'>): ReturnType<typeof items.slice> {
    let first = items.length
    while (first > 0 && (items.at(first - 1)?.seq ?? 0) > this.#before.seq) first--
    return items.slice(first)
  }

  /** Live text may start late, or be replaced by the line that completes it: each code unit is yielded once. */
  #tellText({ item, part, kind, off, text }: LiveTextPart): void {
    const key = `${item} ${part}`
    const told = this.#told.get(key) ?? 0
    const end = off + text.length
    if (end <= told) return
    this.#told.set(key, end)
    this.#tell({ type: `${kind}_delta`, messageId: item, text: text.slice(Math.max(0, told - off)) })
  }

  #isFirst(name: string): boolean {
    if (this.#seen.has(name)) return false
    this.#seen.add(name)
    return true
  }

  #tell(event: ReplyEvent<never>): void {
    if (this.#emit) this.#emit(event)
    else this.#held.push(event)
  }
}

interface LiveTextPart {
  item: string
  part: number
  kind: 'text' | 'reasoning'
  off: number
  text: string
}

function difference(after: Readonly<Required<Usage>>, before: Readonly<Required<Usage>>): Usage {
  const spent: Usage = {}
  for (const name of Object.keys(after) as (keyof Usage)[])
    if (after[name] !== before[name]) spent[name] = after[name] - before[name]
  return spent
}

function endMissed(): ReturnType<typeof localProblem> {
  return localProblem('end-missed', 'The end of the run was not received. Its result is in the transcript.')
}
