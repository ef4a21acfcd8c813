import { memoryStore, SessionError, type Message, type SessionStore } from '@tapetree/session'
import type { Model } from '../models/model.ts'
import { allowAll, type Tool } from '../tools/tool.ts'
import type { InputSchema, ToolInput } from '../tools/tool-input.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'
import { replyOf, RunTally, type AskOptions, type Reply, type ReplyEvent } from './reply.ts'

/** The options of its sessions. Unlike `AgentSession.open`, the default is no tools, and every call is allowed. */
export interface AgentOptions extends Omit<AgentSessionOptions, 'sessionId' | 'create' | 'model' | 'models'> {
  model: Model
}

export interface AgentAskOptions<Schema extends InputSchema = InputSchema> extends AskOptions<Schema> {
  /** Created if it does not exist. Default: `default`. */
  sessionId?: string | undefined
  /** Default, also for 0: 8192. */
  maxOutputTokens?: number
}

/** Older messages stay in the session. */
const shownMessages = 100
const defaultMaxOutputTokens = 8192
const ownSession = 'default'

/** Creates an agent in a few lines. Its sessions live in memory unless it is given a `store`. */
export function createAgent(options: AgentOptions): Agent {
  return new Agent(options)
}

/** One configuration for any number of sessions. Each session is opened on first use, and created if it does not exist. */
export class Agent {
  readonly store: SessionStore
  readonly #options: AgentOptions
  readonly #opened = new Map<string, Promise<AgentSession>>()
  /** The model that each session used last. */
  readonly #used = new Map<string, Model>()
  /** Aborts the prompts under way, by session. A prompt is under way from the call on. */
  readonly #asking = new Map<string, Set<AbortController>>()
  #model: Model
  #tools: AgentOptions['tools']
  #systemPrompt: AgentOptions['systemPrompt']

  constructor(options: AgentOptions) {
    this.#options = options
    this.store = options.store ?? memoryStore()
    this.#model = options.model
    this.#tools = options.tools
    this.#systemPrompt = options.systemPrompt
  }

  /**
   * Resolves with the answer when the run has ended, also if it failed: see `outcome`. Rejects if no run starts: the prompt is empty,
   * or the session is busy and `whenBusy` is not `wait`.
   */
  async ask<Schema extends InputSchema = InputSchema>(
    text: string,
    { sessionId = ownSession, ...options }: AgentAskOptions<Schema> = {},
  ): Promise<Reply<ToolInput<Schema>>> {
    const asked = this.#begin(sessionId, options)
    try {
      return await (await this.#current(sessionId)).ask(text, asked.options)
    } finally {
      asked.end()
    }
  }

  /** Like `ask`, but yields what happens meanwhile; the last event is `end`, with the reply. Leaving the loop aborts the run. */
  async *stream<Schema extends InputSchema = InputSchema>(
    text: string,
    { sessionId = ownSession, ...options }: AgentAskOptions<Schema> = {},
  ): AsyncGenerator<ReplyEvent<ToolInput<Schema>>, void> {
    const asked = this.#begin(sessionId, options)
    try {
      yield* (await this.#current(sessionId)).stream(text, asked.options)
    } finally {
      asked.end()
    }
  }

  /** Resumes a run that was interrupted by the end of its process, and resolves with its reply; undefined if there is none. */
  async resume(sessionId = ownSession): Promise<Reply | undefined> {
    const session = await this.#current(sessionId)
    const tally = new RunTally()
    const stop = session.subscribe((event) => tally.hear(event))
    try {
      const run = await session.resume()
      return run && (await replyOf(run, tally))
    } finally {
      stop()
    }
  }

  /** The session itself, for everything that an `AgentSession` can do. The agent closes it. */
  session(sessionId = ownSession): Promise<AgentSession> {
    const known = this.#opened.get(sessionId)
    if (known) return known
    this.#used.set(sessionId, this.#model)
    const opening = AgentSession.open(this.#optionsOf(sessionId))
    this.#opened.set(sessionId, opening)
    opening.catch(() => this.#opened.delete(sessionId))
    return opening
  }

  /** A copy of the newest 100 messages. */
  async history(sessionId = ownSession): Promise<Message[]> {
    const { session } = await this.session(sessionId)
    const { messages } = await session.getContext()
    return structuredClone(messages.slice(-shownMessages).map(({ message }) => message))
  }

  /** Starts the conversation anew. The old messages stay in the session as a branch. */
  async clear(sessionId = ownSession): Promise<void> {
    await (await this.session(sessionId)).navigate(null)
  }

  async abort(sessionId = ownSession): Promise<void> {
    const asked = this.#asking.get(sessionId)
    for (const controller of asked ?? []) controller.abort()
    await (await this.#opened.get(sessionId))?.abort()
    if (this.#asking.get(sessionId) === asked) this.#asking.delete(sessionId)
  }

  /** Resolves when nothing runs in the session. */
  async untilIdle(sessionId = ownSession): Promise<void> {
    await (await this.#opened.get(sessionId))?.untilIdle()
  }

  isBusy(sessionId = ownSession): boolean {
    return this.#asking.has(sessionId)
  }

  setSystemPrompt(prompt: string): void {
    this.#systemPrompt = prompt
  }

  setTools(tools: readonly Tool[]): void {
    this.#tools = tools
  }

  setModel(model: Model): void {
    this.#model = model
  }

  async close(): Promise<void> {
    for (const session of this.#opened.values()) await (await session).close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #begin<Schema extends InputSchema>(
    sessionId: string,
    options: AskOptions<Schema>,
  ): { options: AskOptions<Schema>; end: () => void } {
    const others = this.#asking.get(sessionId) ?? new Set()
    if (others.size > 0 && options.whenBusy !== 'wait')
      throw new SessionError('session-busy', `Session ${sessionId} is busy with a run.`)
    const controller = new AbortController()
    this.#asking.set(sessionId, others.add(controller))
    const { signal: given, maxOutputTokens } = options
    const signal = given ? AbortSignal.any([given, controller.signal]) : controller.signal
    const limit = maxOutputTokens || defaultMaxOutputTokens
    return {
      options: { expandTemplates: false, ...options, maxOutputTokens: limit, signal },
      end: () => {
        others.delete(controller)
        if (others.size === 0 && this.#asking.get(sessionId) === others) this.#asking.delete(sessionId)
      },
    }
  }

  /** The session, with the current model of the agent. */
  async #current(sessionId: string): Promise<AgentSession> {
    const session = await this.session(sessionId)
    const model = this.#model
    if (this.#used.get(sessionId) !== model) await session.setModel(model.provider, model.id)
    this.#used.set(sessionId, model)
    return session
  }

  #optionsOf(sessionId: string): AgentSessionOptions {
    const { policy, mode, gate } = this.#options
    const { provider, id: modelId } = this.#model
    return {
      hasSubagents: false,
      ...this.#options,
      ...((policy ?? mode ?? gate) === undefined && { gate: allowAll }),
      store: this.store,
      sessionId,
      create: true,
      model: { provider, modelId },
      models: { open: () => Promise.resolve(this.#model), choices: () => onlyModel(this.#model).choices() },
      tools: (context) => {
        const tools = this.#tools ?? []
        return typeof tools === 'function' ? tools(context) : tools
      },
      systemPrompt: () => {
        const prompt = this.#systemPrompt ?? ''
        return typeof prompt === 'function' ? prompt() : prompt
      },
    }
  }
}
