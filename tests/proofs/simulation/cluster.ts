import { AgentSession, defineTool, onlyModel, type Gate, type Tool } from '@tapetree/agent'
import type { ModelRequest } from '@tapetree/agent/models'
import type { Requests } from '@tapetree/agent/permissions'
import { defaultRunSettings, systemClock } from '@tapetree/agent/run'
import { createRedactor } from '@tapetree/agent/settings'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { SessionStore } from '@tapetree/session'
import { z } from 'zod'
import { AgentDriver } from '../../../packages/server/src/drivers/agent-driver.ts'
import { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'
import { recoverAbandoned, recoverOpened, type RecoveryOptions } from '../../../packages/server/src/live/recovery.ts'
import { Database } from '../../../packages/session/src/stores/postgres/database.ts'
import { PostgresLogStore } from '../../../packages/session/src/stores/postgres/postgres-store.ts'
import type { Link, Network } from './network.ts'
import type { Referee } from './referee.ts'
import type { Life, World } from './world.ts'

/** How long the claims of a node hold without a sign of life, on the clock of the database. */
const leaseMs = 3000
/** Shorter than that of a server, so that sessions change their nodes more often. */
const idleMs = 30_000

const redactor = createRedactor()
const schema = z.looseObject({ ms: z.number() })

export interface NodeParts {
  world: World
  network: Network
  referee: Referee
  /** How often it looks for sessions of nodes that have died. */
  abandonedEveryMs: number
}

/** One process of the cluster, from its start to its end: the store, the live sessions and the recovery of a server. */
export class ClusterNode {
  readonly life: Life
  readonly link: Link
  readonly sessions: LiveSessions
  readonly #parts: NodeParts
  readonly #store: SessionStore
  readonly #closing = new AbortController()
  readonly #tools: readonly Tool[]

  /** Call it as part of the life of the node. */
  constructor(life: Life, parts: NodeParts) {
    this.life = life
    this.#parts = parts
    const { network } = parts
    this.link = network.linkOf(life)
    const options = { url: life.name, leaseMs, connections: 6 }
    const database = new Database(options, (_, max) => network.openPool(this.link, max))
    this.#store = new SessionStore(new PostgresLogStore(options, database))
    this.sessions = new LiveSessions({
      store: this.#store,
      openDriver: (sessionId) => this.#openDriver(sessionId),
      create: () => Promise.reject(new Error('Clients name the sessions that they create.')),
      idleMs,
      onProblem: () => undefined,
    })
    this.#tools = [this.#tool('pay', 'never'), this.#tool('look', 'safe')]
    void this.#takeOver()
  }

  /** Creates the session unless it exists. */
  async create(sessionId: string): Promise<void> {
    await (await this.#store.open(sessionId, { create: { cwd: '/' } })).close()
  }

  /** As on a signal to end: runs stay open, for another node. */
  async stop(): Promise<void> {
    this.#closing.abort()
    await this.sessions.close()
    await this.#store.close()
  }

  /** As a server does, without its search through all sessions at its start, which takes most of the time of a simulation. */
  async #takeOver(): Promise<void> {
    const { signal } = this.#closing
    const options: RecoveryOptions = {
      policy: 'resume',
      onRecovered: ({ sessionId, step }) => this.#parts.referee.recovered(this, sessionId, step.type),
    }
    recoverOpened(this.sessions, options)
    while (!signal.aborted) {
      await recoverAbandoned(this.sessions, options).catch(() => undefined)
      await systemClock.wait(this.#parts.abandonedEveryMs, signal).catch(() => undefined)
    }
  }

  async #openDriver(sessionId: string): Promise<AgentDriver> {
    const { referee } = this.#parts
    const model = scriptedModel([], {
      clock: systemClock,
      otherwise: (request) => {
        model.requests.length = 0
        return this.#answer(request)
      },
    })
    const agent = await AgentSession.open({
      store: this.#store,
      sessionId,
      owner: 'server',
      models: onlyModel(model),
      tools: this.#tools,
      gate: gateOf,
      hasSubagents: false,
      settings: () => ({ compaction: { ...defaultRunSettings.compaction, isEnabled: false } }),
      redactor,
      cwd: '/',
    })
    agent.session.subscribe((line) => referee.acknowledged(this, sessionId, line))
    return new AgentDriver({ agent })
  }

  #answer({ messages }: ModelRequest): ScriptBuilder {
    const { world, referee } = this.#parts
    const said = script().wait(Math.round(world.between(50, 3000)))
    const hasResults = messages.at(-1)?.role === 'tool'
    if (world.chance(hasResults ? 0.6 : 0.3)) return said.text('Done.')
    for (let calls = world.chance(0.3) ? 2 : 1; calls > 0; calls--) {
      const input = { ms: Math.round(world.between(20, 8000)), isAsking: world.chance(0.15) }
      said.toolCall(referee.nextCall(), world.chance(0.6) ? 'pay' : 'look', input)
    }
    return said
  }

  #tool(name: string, replay: 'never' | 'safe'): Tool {
    return defineTool({
      name,
      description: name,
      schema,
      access: () => [],
      replay,
      run: async ({ ms }, { callId, sessionId, signal, clock }) => {
        this.#parts.referee.started(this, { sessionId, callId, tool: name })
        await clock.wait(ms, signal)
        return { content: 'ok' }
      },
    })
  }
}

/** Asks for some calls, always for the same ones. */
function gateOf(requests: Requests): Gate {
  return {
    admit: async ({ runId, callId, tool, input }, signal) => {
      if (input['isAsking'] !== true) return { type: 'allowed' }
      const question = { runId, callId, tool, input, title: `May ${tool} run?`, options: [] }
      const { outcome } = await requests.ask(question, signal)
      return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'The user said no.' }
    },
  }
}
