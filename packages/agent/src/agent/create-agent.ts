import { memoryStore, SessionError, type Message, type SessionStore } from '@tapetree/session'
import type { RunEnd } from '../run/run-settings.ts'
import type { Model } from '../models/model.ts'
import { allowAll, type Tool } from '../tools/tool.ts'
import { AgentSession, type PromptOutcome } from './agent-session.ts'
import { fromCallbacks, type StreamCallbacks } from './events.ts'
import { onlyModel } from './model-choice.ts'
import type { RunSettings } from '../run/run-settings.ts'

export interface AgentConfig {
  model: Model
  tools?: readonly Tool[]
  systemPrompt?: string
  workingDir?: string
}

export interface SendOptions {
  /** Created if it does not exist. Default: the agent's own session. */
  sessionId?: string
  /** Default: that of the model. */
  temperature?: number
  /** Default, also for 0: 8192. */
  maxTokens?: number
}

/** How many messages `history` returns. None is ever removed. */
const shownMessages = 100
const defaultMaxTokens = 8192
const ownSession = 'default'

/** An agent in memory that runs its tools without asking. A few lines are enough to use it. */
export interface Agent {
  /** Contains its sessions, under the ids used here. */
  readonly sessions: SessionStore
  /** Resolves with how the run ended, also if it failed. Rejects if the session is busy or the prompt is empty. */
  send(prompt: string, options?: SendOptions & StreamCallbacks): Promise<RunEnd>
  /** The newest 100 messages, as a copy. */
  history(sessionId?: string): Promise<Message[]>
  /** Starts the conversation over. */
  clear(sessionId?: string): Promise<void>
  cancel(sessionId?: string): Promise<void>
  isBusy(sessionId?: string): boolean
  setSystemPrompt(prompt: string): void
  setTools(tools: readonly Tool[]): void
  setModel(model: Model): void
  close(): Promise<void>
}

export function createAgent(config: AgentConfig): Agent {
  let { model, tools = [], systemPrompt = '' } = config
  const { workingDir: cwd } = config
  const store = memoryStore()
  const opened = new Map<string, Promise<AgentSession>>()
  const settings = new Map<string, Partial<RunSettings>>()
  const used = new Map<string, Model>()
  /** Prompts in progress by session: each resolves when the run starts, and rejects if it is refused. */
  const sending = new Map<string, Promise<PromptOutcome>>()

  return {
    sessions: store,
    async send(prompt, { sessionId = ownSession, temperature, maxTokens, ...callbacks } = {}) {
      if (sending.has(sessionId)) throw new SessionError('session-busy', `Session ${sessionId} is busy with a run.`)
      const maxOutputTokens = maxTokens || defaultMaxTokens
      settings.set(sessionId, { maxOutputTokens, ...(temperature !== undefined && { temperature }) })
      let stop: (() => void) | undefined
      const starting = open(sessionId).then(async (agent) => {
        if (used.get(sessionId) !== model) await agent.setModel(model.provider, model.id)
        used.set(sessionId, model)
        stop = agent.subscribe(fromCallbacks(callbacks))
        return agent.prompt(prompt, { whenBusy: 'reject', expandTemplates: false })
      })
      sending.set(sessionId, starting)
      try {
        const outcome = await starting
        if (outcome.type !== 'started') throw new TypeError('A prompt that is rejected when busy never waits.')
        return await outcome.run.done
      } finally {
        stop?.()
        sending.delete(sessionId)
      }
    },
    async history(sessionId = ownSession) {
      const { session } = await open(sessionId)
      const { messages } = await session.getContext()
      return structuredClone(messages.slice(-shownMessages).map(({ message }) => message))
    },
    async clear(sessionId = ownSession) {
      await (await open(sessionId)).navigate(null)
    },
    async cancel(sessionId = ownSession) {
      // Only a run that has started can be stopped. The caller of `send` gets the error if it did not start.
      await sending.get(sessionId)?.catch(() => undefined)
      await (await opened.get(sessionId))?.abort()
    },
    isBusy: (sessionId = ownSession) => sending.has(sessionId),
    setSystemPrompt: (prompt) => void (systemPrompt = prompt),
    setTools: (given) => void (tools = given),
    setModel: (given) => void (model = given),
    async close() {
      for (const agent of opened.values()) await (await agent).close()
    },
  }

  function open(sessionId: string): Promise<AgentSession> {
    const known = opened.get(sessionId)
    if (known) return known
    const opening = openSession(sessionId)
    opened.set(sessionId, opening)
    opening.catch(() => opened.delete(sessionId))
    return opening
  }

  async function openSession(sessionId: string): Promise<AgentSession> {
    const made = await store.create({ id: sessionId, ...(cwd !== undefined && { cwd }) }).catch(unlessThere)
    used.set(sessionId, model)
    try {
      return await AgentSession.open({
        store,
        sessionId,
        models: { open: () => Promise.resolve(model), choices: () => onlyModel(model).choices() },
        tools: () => tools,
        systemPrompt: () => systemPrompt,
        gate: () => allowAll,
        hasSubagents: false,
        settings: () => settings.get(sessionId) ?? {},
        ...(cwd !== undefined && { cwd }),
      })
    } finally {
      await made?.close()
    }
  }
}

function unlessThere(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'session-exists') return undefined
  throw error
}
