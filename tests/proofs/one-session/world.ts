import { appendFileSync } from 'node:fs'
import {
  AgentSession,
  defineTool,
  onlyModel,
  allowAll,
  type AgentSessionOptions,
  type Gate,
  type Tool,
} from '@tapetree/agent'
import { defaultRunSettings, type Clock } from '@tapetree/agent/run'
import type { ModelRequest } from '@tapetree/agent/models'
import type { Requests } from '@tapetree/agent/permissions'
import { createRedactor } from '@tapetree/agent/settings'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { defaultPolicy } from '../../../packages/redact/src/redactor.ts'
import type { SessionStore } from '@tapetree/session'
import { z } from 'zod'
import { AgentDriver } from '../../../packages/server/src/drivers/agent-driver.ts'
import { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'

/** Holds up models and tools until the history lets one of them go on. */
export interface Pace {
  /** Resolves when it is its turn; rejects when the signal is aborted. */
  pass(signal?: AbortSignal): Promise<void>
}

export interface WorldOptions {
  store: SessionStore
  sessionId: string
  random: () => number
  pace: Pace
  /** Where each run of a tool leaves a line: outside of the log. */
  ledger: string
  /** Makes the ids of calls differ from those of other processes. */
  prefix: string
  folder: string
  isAsking: boolean
  clock?: Clock
}

/** Long enough that there is something to cut. */
export const filler = 'and so on '.repeat(30)

const redactor = createRedactor(defaultPolicy())

/** What all owners of the session in one process have in common: the model, the tools and the gate. */
export class World {
  readonly #options: WorldOptions
  #calls = 0

  constructor(options: WorldOptions) {
    this.#options = options
  }

  get sessionId(): string {
    return this.#options.sessionId
  }

  /** For files beside the sessions. */
  get folder(): string {
    return this.#options.folder
  }

  agentOptions(): AgentSessionOptions {
    const { store, sessionId, isAsking, clock } = this.#options
    const model = scriptedModel([], { otherwise: (request) => this.#answer(request) })
    return {
      store,
      sessionId,
      models: onlyModel(model),
      tools: () => [this.#tool('pay', 'never'), this.#tool('look', 'safe')],
      gate: isAsking ? askingGate : () => allowAll,
      hasSubagents: false,
      settings: () => ({ compaction: { ...defaultRunSettings.compaction, isEnabled: false, keepTokens: 20 } }),
      redactor,
      cwd: '/',
      ...(clock && { clock }),
    }
  }

  openAgent(): Promise<AgentSession> {
    return AgentSession.open(this.agentOptions())
  }

  /** As a server or a terminal has them. */
  liveSessions(): LiveSessions {
    const { store, clock } = this.#options
    return new LiveSessions({
      store,
      openDriver: async () => new AgentDriver({ agent: await this.openAgent() }),
      create: () => Promise.reject(new Error('There is one session here.')),
      ...(clock && { clock }),
    })
  }

  #answer({ messages, system }: ModelRequest): ScriptBuilder {
    const { random, pace } = this.#options
    const said = script().do(() => pace.pass())
    // A summary.
    if (system !== '') return said.text('In short.')
    const last = messages.at(-1)
    const hasResults = last?.role === 'tool'
    if (random() < (hasResults ? 0.75 : 0.3)) return said.text(`Done, ${filler}`).do(() => pace.pass())
    for (let calls = random() < 0.4 ? 2 : 1; calls > 0; calls--) {
      const id = `${this.#options.prefix}c${++this.#calls}`
      said.toolCall(id, random() < 0.6 ? 'pay' : 'look', { id })
    }
    return said
  }

  #tool(name: string, replay: 'never' | 'safe'): Tool {
    const { pace, ledger } = this.#options
    return defineTool({
      name,
      description: `A tool by the name of ${name}.`,
      schema: z.looseObject({}),
      access: () => [],
      replay,
      run: async (_, { callId, signal }) => {
        appendFileSync(ledger, `${name} ${callId}\n`)
        await pace.pass(signal)
        return { content: 'ok' }
      },
    })
  }
}

function askingGate(requests: Requests): Gate {
  return {
    admit: async ({ runId, callId, tool, input }, signal) => {
      const question = { runId, callId, tool, input, title: `May ${tool} run?`, options: [] }
      const { outcome } = await requests.ask(question, signal)
      return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'The user said no.' }
    },
  }
}
