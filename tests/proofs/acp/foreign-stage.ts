import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AgentSession } from '@tapetree/agent'
import type { Clock, SteerPolicy } from '@tapetree/agent/run'
import { PermissionGate } from '@tapetree/agent/permissions'
import { newId, type SessionStore } from '@tapetree/session'
import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import { wait } from '@tapetree/session/util/wait'
import { AcpAgent } from '../../../packages/server/src/acp/acp-agent.ts'
import { programUrl } from '../../../packages/agent/src/util/program-url.ts'
import { defaultTenant, TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import { AgentDriver } from '../../../packages/server/src/drivers/agent-driver.ts'
import { serverOwner, type SessionDriver } from '../../../packages/server/src/live/driver.ts'
import type { LiveSession } from '../../../packages/server/src/live/live-session.ts'
import { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'
import { startServer, type RunningServer } from '../../../packages/server/src/server.ts'
import { DurabilityWitness } from '../../../packages/server/src/testing/watched-port.ts'
import { readLog } from '../sync/stage.ts'

/** What a server hosts; the same after a restart. */
export interface ForeignTask {
  folder: string
  /** What the agent can do with a session that it had before. */
  features: 'load' | 'resume' | 'none'
  steerPolicy: SteerPolicy
  /** An existing session, on an existing port: after a restart. */
  sessionId?: string
  port?: number
  token?: string
}

const agentProgram = fileURLToPath(programUrl('unruly-agent', import.meta.url))

/** The folder where the agent keeps its sessions and its ledger. */
export const agentFolder = (folder: string): string => join(folder, 'agent')

/** Ten times as fast, so that an agent that ignores a cancel costs a second. */
const fastClock: Clock = { now: () => Date.now() * 10, wait: (ms, signal) => wait(ms / 10, signal) }

/** A server of one session whose agent is a child process: real store, real sockets, real agent connection. */
export class ForeignStage {
  readonly witness = new DurabilityWitness(nodeFilePort())
  /** What the agent has said, by item, part and kind. */
  readonly spoken = new Map<string, string>()
  readonly #task: ForeignTask
  sessionId = ''
  token = ''
  live!: LiveSession
  #logPath = ''
  #server!: RunningServer

  private constructor(task: ForeignTask) {
    this.#task = task
  }

  static async open(task: ForeignTask): Promise<ForeignStage> {
    const stage = new ForeignStage(task)
    await mkdir(agentFolder(task.folder), { recursive: true })
    stage.sessionId = task.sessionId ?? (await newSession(task.folder))
    stage.token = task.token ?? ''
    await stage.start(task.port)
    return stage
  }

  get origin(): string {
    return this.#server.url
  }

  get port(): number {
    return this.#server.address.port
  }

  async start(port?: number): Promise<void> {
    const { folder } = this.#task
    for (const [index, line] of readLog(folder, this.sessionId).entries()) this.witness.lines.set(index + 1, line)
    const store = openFileStore({ folder, port: this.witness.port })
    await using session = await store.open(this.sessionId)
    this.#logPath = join(session.path ?? '', 'events.jsonl')
    const sessions = new LiveSessions({
      store,
      openDriver: () => this.#openDriver(store),
      create: () => Promise.reject(new Error('There is one session here.')),
      tickMs: 2,
    })
    this.live = await sessions.get(this.sessionId)
    // Before a client connects: an interrupted run is resumed first.
    await this.live.driver.perform({ op: 'resume', args: { by_person: true } }, { cmd: newId() })
    const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
    this.token = tokens.takeFirstToken() ?? this.token
    const tenants = new Map([[defaultTenant, sessions]])
    this.#server = await startServer({ tenants, tokens, ...(port !== undefined && { port }) })
  }

  async close(): Promise<void> {
    await this.#server.close()
  }

  async #openDriver(store: SessionStore): Promise<SessionDriver> {
    const { folder, features, steerPolicy } = this.#task
    const args = [agentProgram, agentFolder(folder), features, this.#logPath]
    const env = { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE: join(folder, '..', 'cache') }
    const program = { command: process.execPath, args, env }
    const foreign = new AcpAgent({ name: 'unruly', program, cwd: folder })
    const agent = await AgentSession.open({
      store,
      sessionId: this.sessionId,
      foreign,
      cwd: folder,
      gate: (requests) => new PermissionGate({ requests, policy: () => ({ cwd: folder, home: '/', mode: 'ask' }) }),
      hasSubagents: false,
      owner: serverOwner,
      clock: fastClock,
      settings: {
        steerPolicy,
        retry: { maxRetries: 3, baseMs: 10, capMs: 100, longestRetryAfterMs: 1000, jitter: 0 },
      },
    })
    const driver = new AgentDriver({
      agent,
      slashCommands: () => foreign.commands,
      onChange: (listener) => foreign.onChange(listener),
      close: () => foreign.close(),
    })
    driver.subscribe((event) => {
      if (event.type !== 'delta' && event.type !== 'partial') return
      const key = `${event.item} ${event.part} ${event.kind}`
      const known = this.spoken.get(key) ?? ''
      this.spoken.set(key, known.slice(0, event.off) + event.text)
    })
    return driver
  }
}

async function newSession(folder: string): Promise<string> {
  const store = openFileStore({ folder })
  const session = await store.create({ cwd: folder })
  await session.close()
  await store.close()
  return session.id
}
