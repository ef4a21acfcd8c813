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

/** One configuration for any number of sessions, each opened on first use. */
export interface Agent extends AsyncDisposable {
  readonly store: SessionStore
  /**
   * Resolves with the answer when the run has ended, also if it failed: see `outcome`. Rejects if no run starts: the prompt is empty,
   * or the session is busy and `whenBusy` is not `wait`.
   */
  ask<Schema extends InputSchema = InputSchema>(
    text: string,
    options?: AgentAskOptions<Schema>,
  ): Promise<Reply<ToolInput<Schema>>>
  /** Like `ask`, but yields what happens meanwhile; the last event is `end`, with the reply. Leaving the loop aborts the run. */
  stream<Schema extends InputSchema = InputSchema>(
    text: string,
    options?: AgentAskOptions<Schema>,
  ): AsyncGenerator<ReplyEvent<ToolInput<Schema>>, void>
  /** Resumes a run that was interrupted by the end of its process, and resolves with its reply; undefined if there is none. */
  resume(sessionId?: string): Promise<Reply | undefined>
  /** The session itself, for everything that an `AgentSession` can do. The agent closes it. */
  session(sessionId?: string): Promise<AgentSession>
  /** A copy of the newest 100 messages. */
  history(sessionId?: string): Promise<Message[]>
  /** Starts the conversation anew. The old messages stay in the session as a branch. */
  clear(sessionId?: string): Promise<void>
  abort(sessionId?: string): Promise<void>
  untilIdle(sessionId?: string): Promise<void>
  isBusy(sessionId?: string): boolean
  setSystemPrompt(prompt: string): void
  setTools(tools: readonly Tool[]): void
  setModel(model: Model): void
  close(): Promise<void>
}

/** Creates an agent in a few lines. Its sessions live in memory unless it is given a `store`. */
export function createAgent(options: AgentOptions): Agent {
  let { model, tools = [], systemPrompt = '' } = options
  const { store = memoryStore(), policy, mode, gate } = options
  const isJudged = (policy ?? mode ?? gate) !== undefined
  const opened = new Map<string, Promise<AgentSession>>()
  const used = new Map<string, Model>()
  /** Aborts the prompts under way, by session. A prompt is under way from the call on. */
  const asking = new Map<string, Set<AbortController>>()

  const agent: Agent = {
    store,
    async ask(text, { sessionId = ownSession, ...options } = {}) {
      const asked = begin(sessionId, options)
      try {
        return await (await current(sessionId)).ask(text, asked.options)
      } finally {
        asked.end()
      }
    },
    async *stream(text, { sessionId = ownSession, ...options } = {}) {
      const asked = begin(sessionId, options)
      try {
        yield* (await current(sessionId)).stream(text, asked.options)
      } finally {
        asked.end()
      }
    },
    async resume(sessionId = ownSession) {
      const session = await current(sessionId)
      const tally = new RunTally()
      const stop = session.subscribe((event) => tally.hear(event))
      try {
        const run = await session.resume()
        return run && (await replyOf(run, tally))
      } finally {
        stop()
      }
    },
    session: (sessionId = ownSession) => open(sessionId),
    async history(sessionId = ownSession) {
      const { session } = await open(sessionId)
      const { messages } = await session.getContext()
      return structuredClone(messages.slice(-shownMessages).map(({ message }) => message))
    },
    async clear(sessionId = ownSession) {
      await (await open(sessionId)).navigate(null)
    },
    async abort(sessionId = ownSession) {
      const asked = asking.get(sessionId)
      for (const controller of asked ?? []) controller.abort()
      await (await opened.get(sessionId))?.abort()
      if (asking.get(sessionId) === asked) asking.delete(sessionId)
    },
    async untilIdle(sessionId = ownSession) {
      await (await opened.get(sessionId))?.untilIdle()
    },
    isBusy: (sessionId = ownSession) => asking.has(sessionId),
    setSystemPrompt: (prompt) => void (systemPrompt = prompt),
    setTools: (given) => void (tools = given),
    setModel: (given) => void (model = given),
    async close() {
      for (const session of opened.values()) await (await session).close()
    },
    [Symbol.asyncDispose]: () => agent.close(),
  }
  return agent

  function begin<Schema extends InputSchema>(
    sessionId: string,
    options: AskOptions<Schema>,
  ): { options: AskOptions<Schema>; end: () => void } {
    const others = asking.get(sessionId) ?? new Set()
    if (others.size > 0 && options.whenBusy !== 'wait')
      throw new SessionError('session-busy', `Session ${sessionId} is busy with a run.`)
    const controller = new AbortController()
    asking.set(sessionId, others.add(controller))
    const { signal: given, maxOutputTokens } = options
    const signal = given ? AbortSignal.any([given, controller.signal]) : controller.signal
    return {
      options: {
        expandTemplates: false,
        ...options,
        maxOutputTokens: maxOutputTokens || defaultMaxOutputTokens,
        signal,
      },
      end: () => {
        others.delete(controller)
        if (others.size === 0 && asking.get(sessionId) === others) asking.delete(sessionId)
      },
    }
  }

  /** The session with the model of now. */
  async function current(sessionId: string): Promise<AgentSession> {
    const session = await open(sessionId)
    if (used.get(sessionId) !== model) await session.setModel(model.provider, model.id)
    used.set(sessionId, model)
    return session
  }

  function open(sessionId: string): Promise<AgentSession> {
    const known = opened.get(sessionId)
    if (known) return known
    used.set(sessionId, model)
    const opening = AgentSession.open({
      hasSubagents: false,
      ...options,
      ...(!isJudged && { gate: allowAll }),
      store,
      sessionId,
      create: true,
      model: { provider: model.provider, modelId: model.id },
      models: { open: () => Promise.resolve(model), choices: () => onlyModel(model).choices() },
      tools: (context) => (typeof tools === 'function' ? tools(context) : tools),
      systemPrompt: () => (typeof systemPrompt === 'function' ? systemPrompt() : systemPrompt),
    })
    opened.set(sessionId, opening)
    opening.catch(() => opened.delete(sessionId))
    return opening
  }
}
