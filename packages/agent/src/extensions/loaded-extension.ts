import { newId, text } from '@tapetree/session'
import type { Clock } from '@tapetree/session/util/wait'
import type { Answer, Question } from '../tools/tool.ts'
import type { HookName } from './extension.ts'
import { messageOf } from '../util/message-of.ts'
import { ExtensionFailure } from './extension-failure.ts'
import type { HookSession } from '../run/hooks.ts'
import type { AnswerRequest, ExtensionRequest, Invocation, Offer, OfferedHandler, Runner } from './runner.ts'
import { TimeLimit } from './time-limit.ts'
import { z } from 'zod'

export interface ExtensionProblem {
  extension: string
  /** The hook, tool or command, if it was one. */
  hook?: string
  /** A sentence, safe to show. */
  message: string
}

export interface ExtensionLimits {
  /** For each handler. The time a user takes to answer does not count. */
  handlerMs: number
  /** For each command. */
  commandMs: number
  /** Until the default function has returned. */
  loadMs: number
  /** Maximum silence of a model. */
  modelMs: number
  memoryMb: number
  /** How many failures switch an extension off. */
  failures: number
}

export const defaultExtensionLimits: ExtensionLimits = {
  handlerMs: 5000,
  commandMs: 60_000,
  loadMs: 10_000,
  modelMs: 300_000,
  memoryMb: 256,
  failures: 3,
}

export interface LoadedExtensionOptions {
  limits: ExtensionLimits
  clock: Clock
  cwd: string
  /** The session for requests outside of an invocation. */
  session: () => HookSession | undefined
  onProblem: (problem: ExtensionProblem) => void
}

export interface InvokeOptions {
  limitMs: number
  session: HookSession | undefined
  /** On abort the code is notified, and has its handler limit to finish. */
  signal?: AbortSignal | undefined
  /** On abort, only questions are withdrawn. */
  askSignal?: AbortSignal | undefined
  /** Replaces the session's `ask`. */
  ask?: (question: Question) => Promise<Answer>
  observe?: (text: string) => void
  takePart?: (part: unknown) => Promise<void>
}

interface OpenInvocation extends InvokeOptions {
  limit: TimeLimit
  abort: AbortSignal
}

const empty: Offer = { handlers: [], commands: [], tools: [], providers: [], skills: [], templates: [] }

/** One extension: enforces time limits, reports and counts failures, and switches it off after too many. */
export class LoadedExtension {
  readonly name: string
  readonly #runner: Runner
  readonly #options: LoadedExtensionOptions
  readonly #open = new Map<string, OpenInvocation>()
  /** One crash may fail several invocations. */
  readonly #counted = new WeakSet<Error>()
  #failures = 0
  #offer = empty
  #state: 'new' | 'on' | 'stopped' | 'off' = 'new'
  #starting: Promise<void> | undefined
  #stopping: Promise<void> = Promise.resolve()

  constructor(options: LoadedExtensionOptions, makeRunner: (own: RunnerCallbacks) => Runner) {
    this.#options = options
    this.#runner = makeRunner({
      answerRequest: (request, invocationId) => this.#answerRequest(request, invocationId),
      onCrash: (failure) => {
        if (this.#state !== 'on') return
        this.#state = 'stopped'
        // Pending invocations report the crash themselves.
        if (this.#open.size === 0) this.fail(undefined, failure)
      },
    })
    this.name = this.#runner.name
  }

  get isOff(): boolean {
    return this.#state === 'off'
  }

  /** What it has registered; empty once it is switched off. */
  get offer(): Offer {
    return this.#state === 'off' ? empty : this.#offer
  }

  handlersOf(hook: HookName): readonly OfferedHandler[] {
    return this.offer.handlers.filter((handler) => handler.hook === hook)
  }

  /** An extension that fails to load is reported and off. */
  async load(check: (offer: Offer) => Offer): Promise<void> {
    try {
      this.#offer = check(await this.#startInTime())
      this.#state = 'on'
    } catch (error) {
      this.#state = 'off'
      this.report(undefined, `It could not be loaded: ${messageOf(error)}`)
      await this.#runner.stop(asFailure(error))
    }
  }

  /** Rejects with `ExtensionFailure`. */
  async invoke(invocation: Invocation, options: InvokeOptions): Promise<unknown> {
    await this.#ensureRunning()
    const { limits, clock, cwd } = this.#options
    const id = newId()
    const limit = new TimeLimit(options.limitMs, clock)
    const stopped = new AbortController()
    const onAbort = (): void => {
      stopped.abort(options.signal?.reason)
      limit.restart(Math.min(limit.leftMs, limits.handlerMs))
    }
    options.signal?.addEventListener('abort', onAbort, { once: true })
    if (options.signal?.aborted) onAbort()
    this.#open.set(id, { ...options, limit, abort: stopped.signal })
    const place = { sessionId: options.session?.id ?? '', cwd: options.session?.cwd ?? cwd }
    const answer = this.#runner.invoke(invocation, { id, ...place, signal: stopped.signal })
    try {
      const first = await Promise.race([answer.then((value) => ({ value })), limit.passed])
      if (first !== 'passed') return first.value
      const message = `It took longer than ${Math.round(options.limitMs / 100) / 10} s.`
      const failure = new ExtensionFailure('overdue', message)
      await this.#stop(failure)
      throw failure
    } finally {
      answer.catch(() => undefined)
      options.signal?.removeEventListener('abort', onAbort)
      limit.stop()
      this.#open.delete(id)
      // Cancels its pending questions and waits.
      stopped.abort()
    }
  }

  /** Reports and counts a failure. */
  fail(hook: string | undefined, failure: Error): void {
    if (this.#state === 'off' || this.#counted.has(failure)) return
    this.#counted.add(failure)
    this.report(hook, failure.message)
    this.#failures++
    if (this.#failures < this.#options.limits.failures) return
    this.#state = 'off'
    this.report(undefined, `It was switched off, because it failed ${this.#failures} times.`)
    this.#stopping = this.#runner.stop(new ExtensionFailure('off', this.offWords))
  }

  report(hook: string | undefined, message: string): void {
    this.#options.onProblem({ extension: this.name, ...(hook !== undefined && { hook }), message })
  }

  get offWords(): string {
    return `The extension ${this.name} is switched off.`
  }

  async close(): Promise<void> {
    this.#state = 'off'
    await this.#starting?.catch(() => undefined)
    await Promise.all([this.#stopping, this.#runner.stop(new ExtensionFailure('off', this.offWords))])
  }

  /** Restarts an extension that was stopped or crashed; its state in memory is lost. */
  async #ensureRunning(): Promise<void> {
    if (this.#state === 'stopped') {
      this.#starting ??= this.#startInTime()
        .then(() => {
          if (this.#state === 'stopped') this.#state = 'on'
        })
        .finally(() => (this.#starting = undefined))
      await this.#starting
    }
    if (this.#state === 'off') throw new ExtensionFailure('off', this.offWords)
  }

  async #startInTime(): Promise<Offer> {
    const { limits, clock } = this.#options
    const limit = new TimeLimit(limits.loadMs, clock)
    const start = this.#runner.start()
    try {
      const first = await Promise.race([start, limit.passed])
      if (first !== 'passed') return first
      const failure = new ExtensionFailure('overdue', `It was not loaded within ${limits.loadMs / 1000} s.`)
      await this.#runner.stop(failure)
      throw failure
    } finally {
      start.catch(() => undefined)
      limit.stop()
    }
  }

  async #stop(failure: ExtensionFailure): Promise<void> {
    if (this.#state === 'on') this.#state = 'stopped'
    await this.#runner.stop(failure)
  }

  async #answerRequest(request: ExtensionRequest, invocationId: string | undefined): Promise<unknown> {
    const open = invocationId === undefined ? undefined : this.#open.get(invocationId)
    const session = open?.session ?? this.#options.session()
    switch (request.type) {
      case 'ask':
        return this.#ask(readQuestion(request), session, open)
      case 'append_entry': {
        const custom = readEntryRequest(request)
        return needed(session).append({ type: 'custom', custom })
      }
      case 'append_message': {
        const content = [text(readText(request))]
        return needed(session).append({ type: 'message', message: { role: 'custom', content } })
      }
      case 'leaf_id':
        return needed(session).leafId
      case 'set_label': {
        const { entryId, label } = parsed(labelRequest, request, 'label')
        return needed(session).setLabel(entryId, label)
      }
      case 'labels':
        return [...needed(session).labels()].map(([entryId, label]) => ({ entryId, label }))
      case 'set_name':
        return needed(session).setName(parsed(sessionName, request.name, 'name'))
      case 'send': {
        const { delivery } = parsed(sendRequest, request, 'message')
        return needed(session).send({ text: readText(request), delivery, sender: `extension:${this.name}` })
      }
      case 'observe':
        return open?.observe?.(readText(request))
      case 'model_part':
        open?.limit.restart(this.#options.limits.modelMs)
        return open?.takePart?.(request.part)
      default:
        request satisfies never
        throw new TypeError('There is no such request.')
    }
  }

  async #ask(question: Question, session: HookSession | undefined, open: OpenInvocation | undefined): Promise<Answer> {
    open?.limit.pause()
    try {
      if (open?.ask) return await open.ask(question)
      if (!session) return { text: '', isCancelled: true }
      const signals = [open?.abort, open?.askSignal].filter((signal) => signal !== undefined)
      return await session.ask(this.name, question, AbortSignal.any(signals))
    } finally {
      open?.limit.resume()
    }
  }
}

export interface RunnerCallbacks {
  answerRequest: AnswerRequest
  onCrash: (failure: ExtensionFailure) => void
}

function needed(session: HookSession | undefined): HookSession {
  if (!session) throw new Error('No session is open.')
  return session
}

function asFailure(error: unknown): ExtensionFailure {
  return error instanceof ExtensionFailure ? error : new ExtensionFailure('threw', messageOf(error), { cause: error })
}

/**
 * Requests of extensions are validated before they reach a log or a screen. These functions throw a sentence
 * for the extension.
 */

const question = z.object({
  question: z.string().min(1),
  options: z.array(z.object({ label: z.string().min(1), description: z.string().exactOptional() })).default([]),
})

function readQuestion(request: ExtensionRequest & { type: 'ask' }): Question {
  return parsed(question, request.question, 'question')
}

const entry = z.object({ customType: z.string().min(1).max(200), data: z.record(z.string(), z.json()) })

function readEntryRequest(request: ExtensionRequest & { type: 'append_entry' }): z.output<typeof entry> {
  return parsed(entry, request, 'entry')
}

const labelRequest = z.object({ entryId: z.string().min(1), label: z.string().max(1000) })
const sessionName = z.string().trim().min(1).max(1000)
const sendRequest = z.object({ delivery: z.enum(['steer', 'follow-up']) })

function readText(request: ExtensionRequest & { type: 'append_message' | 'observe' | 'send' }): string {
  return parsed(z.string().min(1), request.text, 'text')
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new TypeError(`The ${what} is not valid. ${z.prettifyError(result.error)}`)
}
