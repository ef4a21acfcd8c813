import { appendFileSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentSession, onlyModel, type AgentSessionOptions, type Gate } from '@tapetree/agent'
import { defaultCompaction, type Clock } from '@tapetree/agent/run'
import { PermissionGate, type Requests } from '@tapetree/agent/permissions'
import { newId, type SessionStore } from '@tapetree/session'
import { sealLine } from '@tapetree/session/format'
import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import { defaultTenant, TokenStore } from '../../../packages/server/src/auth/token-store.ts'
import { AgentDriver } from '../../../packages/server/src/drivers/agent-driver.ts'
import type { SessionDriver } from '../../../packages/server/src/live/driver.ts'
import type { LiveSession } from '../../../packages/server/src/live/live-session.ts'
import { LiveSessions } from '../../../packages/server/src/live/live-sessions.ts'
import { startServer, type RunningServer } from '../../../packages/server/src/server.ts'
import type { Fault } from '../../../packages/server/src/testing/fault.ts'
import { FaultyDriver } from '../../../packages/server/src/testing/faulty-driver.ts'
import { breakLive } from '../../../packages/server/src/testing/faulty-live.ts'
import { DurabilityWitness, hastyPort } from '../../../packages/server/src/testing/watched-port.ts'
import { Gates, talkativeModel, toolsThat } from './talkative-model.ts'

export interface StageOptions {
  folder: string
  random: () => number
  fault?: Fault
  isLong?: boolean
  /** Of the presence of screens. */
  clock?: Clock
  /** An existing session, on an existing port: after a restart. */
  sessionId?: string
  port?: number
  token?: string
  /** Each run of a tool leaves a line here. */
  marks?: string
  gates?: Gates
  /** Another agent than the one that talks. */
  agent?: Partial<AgentSessionOptions>
}

/** A server of one session: real store, real agent, real sockets; only the model follows a script. */
export class Stage {
  readonly options: StageOptions
  readonly gates: Gates
  readonly witness = new DurabilityWitness(nodeFilePort())
  /** What the model and the tools have said, by item, part and kind. */
  readonly spoken = new Map<string, string>()
  /** The head each time when a tool began, by its call. */
  readonly ran = new Map<string, number[]>()
  /** Lines that were written while the server closed: runs may end there that nobody cancelled. */
  readonly closings: { from: number; to: number }[] = []
  sessionId = ''
  token: string
  live!: LiveSession
  #server!: RunningServer

  private constructor(options: StageOptions) {
    this.options = options
    this.token = options.token ?? ''
    this.gates = options.gates ?? new Gates(options.random)
  }

  static async open(options: StageOptions): Promise<Stage> {
    const stage = new Stage(options)
    stage.sessionId = options.sessionId ?? (await newSession(options.folder))
    await stage.#start(options.port)
    return stage
  }

  /** Of the server. */
  get origin(): string {
    return this.#server.url
  }

  get port(): number {
    return this.#server.address.port
  }

  /** Of the session's socket. */
  get url(): string {
    return `${this.origin.replace('http', 'ws')}/api/sessions/${this.sessionId}/ws`
  }

  /** Goes down as it should, and comes back on the same port. */
  async restart(): Promise<void> {
    const { port } = this
    await this.close()
    await this.#start(port)
  }

  async close(): Promise<void> {
    const from = this.live.session.head.seq
    this.gates.open()
    await this.#server.close()
    const to = readLog(this.options.folder, this.sessionId).length
    this.closings.push({ from, to })
  }

  async #start(port?: number): Promise<void> {
    const { folder, fault, clock } = this.options
    for (const [index, line] of readLog(folder, this.sessionId).entries()) this.witness.lines.set(index + 1, line)
    const watched = this.witness.port
    const store = openFileStore({ folder, port: fault === 'frame before durable' ? hastyPort(watched, 15) : watched })
    const sessions = new LiveSessions({
      store,
      openDriver: () => this.#openDriver(store),
      create: () => Promise.reject(new Error('There is one session here.')),
      tickMs: 2,
      ...(clock && { clock }),
    })
    this.live = await sessions.get(this.sessionId)
    if (fault) breakLive(this.live, fault)
    const { driver } = this.live
    // Before anybody can come: what was left behind goes on first, and so does what waits.
    await driver.perform({ op: 'resume', args: { by_person: true } }, { cmd: newId() })
    const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
    this.token = tokens.takeFirstToken() ?? this.token
    const tenants = new Map([[defaultTenant, sessions]])
    this.#server = await startServer({ tenants, tokens, ...(port !== undefined && { port }) })
  }

  async #openDriver(store: SessionStore): Promise<SessionDriver> {
    const { folder, fault, random, isLong = false } = this.options
    const agent = await AgentSession.open({
      store,
      sessionId: this.sessionId,
      models: onlyModel(talkativeModel({ random, gates: this.gates, isLong })),
      tools: () => toolsThat((callId) => this.#run(callId)),
      gate: (requests) => gateOf(requests, fault),
      hasSubagents: false,
      cwd: folder,
      systemPrompt: () => 'You are a test.',
      settings: () => ({ compaction: { ...defaultCompaction, isEnabled: false } }),
      ...this.options.agent,
    })
    const driver: SessionDriver = new AgentDriver({ agent })
    driver.subscribe((event) => {
      if (event.type !== 'delta' && event.type !== 'partial') return
      const key = `${event.item} ${event.part} ${event.kind}`
      const known = this.spoken.get(key) ?? ''
      this.spoken.set(key, known.slice(0, event.off) + event.text)
    })
    return fault ? new FaultyDriver(driver, fault) : driver
  }

  async #run(callId: string): Promise<void> {
    this.ran.set(callId, [...(this.ran.get(callId) ?? []), this.live.session.head.seq])
    if (this.options.marks !== undefined) appendFileSync(this.options.marks, `${callId}\n`)
    await this.gates.pass()
  }
}

function gateOf(requests: Requests, fault: Fault | undefined): Gate {
  const gate = new PermissionGate({
    requests,
    policy: () => ({ cwd: '/', home: '/', mode: 'ask' }),
  })
  if (fault !== 'a tool started before its permission') return gate
  return {
    admit: (call, signal) => {
      void gate.admit(call, signal).catch(() => undefined)
      return Promise.resolve({ type: 'allowed' })
    },
  }
}

/** With a line in it that a newer version has written. */
async function newSession(folder: string): Promise<string> {
  const store = openFileStore({ folder })
  const session = await store.create({ cwd: folder })
  const { id, path = '', head } = session
  await session.close()
  await store.close()
  const future = { type: 'from_the_future', id: crypto.randomUUID(), timestamp: '2026-01-01T00:00:00.000Z' }
  const payload = { from_the_future: { whatever: [1, 2, 3] } }
  const sealed = sealLine({ ...future, ...payload }, head.seq + 1)
  appendFileSync(join(path, logName), `${sealed.text}\n`)
  return id
}

const logName = 'events.jsonl'

/** The log as it lies on the disk. */
export function readLog(folder: string, sessionId: string): string[] {
  const [path] = globSync(join(folder, '**', sessionId, logName))
  if (path === undefined) throw new Error(`There is no log of session ${sessionId}.`)
  return readFileSync(path, 'utf8').split('\n').slice(0, -1)
}
