import type { Ack } from '@tapetree/client/protocol'
import { newId, SessionError } from '@tapetree/session'
import { systemClock } from '@tapetree/agent/run'
import type { Line } from '@tapetree/session/format'
import { RequestProblem } from '../../../packages/server/src/util/problem-error.ts'
import type { ClusterNode } from './cluster.ts'
import type { ModelledDatabase } from './modelled-database.ts'
import type { Referee, SeenSession } from './referee.ts'
import { Life, type World } from './world.ts'

export interface SentMessage {
  sessionId: string
  name: string
  /** `unknown`: the client gave up. `busy`: it was refused. */
  told: 'accepted' | 'busy' | 'unknown'
  attempts: number
}

export interface ClientParts {
  world: World
  referee: Referee
  database: ModelledDatabase
  nodes: () => readonly ClusterNode[]
}

type Answer = { type: 'ack'; ack: Ack } | { type: 'failed'; code: string } | { type: 'silence' }
export type Outcome =
  | { type: 'done'; ack: Ack; attempts: number }
  | { type: 'refused' | 'given-up'; code: string; attempts: number }

/** Refusals that another attempt would not change. */
const final: ReadonlySet<string> = new Set([
  'session-busy',
  'run-not-current',
  'already-resolved',
  'request-not-found',
  'message-not-found',
])
/** Refusals that are faults of this proof, or worse. */
const wrong: ReadonlySet<string> = new Set(['key-reused', 'invalid-command', 'internal', 'empty-prompt'])

/** Nobody tries for longer. */
const patienceMs = 15 * 60_000

/** People at their screens. They send to any node, and again with the same id until they have an answer. */
export class Clients {
  readonly life = new Life('clients')
  readonly messages: SentMessage[] = []
  readonly refusals = new Map<string, number>()
  readonly #parts: ClientParts
  #underWay = 0
  /** They begin nothing new. */
  isClosing = false

  constructor(parts: ClientParts) {
    this.#parts = parts
    parts.referee.onLine = (session, line) => this.#see(session, line)
  }

  get areDone(): boolean {
    return this.#underWay === 0
  }

  /** One session after another, each with some messages. */
  async converse(): Promise<void> {
    const { world } = this.#parts
    await pause(world.between(0, 60_000))
    while (!this.isClosing) {
      const sessionId = newId()
      const created = await this.#watched(() => this.#insist(sessionId, (node) => node.create(sessionId)))
      if (created.type !== 'done') continue
      for (let left = Math.ceil(world.between(3, 14)); left > 0 && !this.isClosing; left--) {
        await this.#watched(() => this.#act(sessionId))
        await pause(world.chance(0.5) ? world.between(100, 4000) : world.between(4000, 90_000))
      }
    }
  }

  /** Sends a command until it has an answer. */
  perform(sessionId: string, op: string, args: object): Promise<Outcome> {
    const id = newId()
    return this.#watched(() =>
      this.#insist(sessionId, async (node) => {
        const live = await node.sessions.get(sessionId)
        return live.perform(id, 'client', { op, args })
      }),
    )
  }

  async #act(sessionId: string): Promise<void> {
    const { world, referee } = this.#parts
    if (world.chance(0.07)) {
      referee.noted(`a client cancels`)
      await this.perform(sessionId, 'cancel', {})
      return
    }
    const message: SentMessage = { sessionId, name: `m${this.messages.length}`, told: 'unknown', attempts: 0 }
    this.messages.push(message)
    const whenBusy = world.pick(['queue', 'queue', 'steer', 'reject'])
    referee.noted(`a client sends ${message.name} (${whenBusy})`)
    const outcome = await this.perform(sessionId, 'prompt', { text: `${message.name} `, when_busy: whenBusy })
    message.attempts = outcome.attempts
    if (outcome.type === 'done') message.told = 'accepted'
    else if (outcome.code === 'session-busy') message.told = 'busy'
    referee.noted(`${message.name} is ${message.told}`)
  }

  /** A screen shows a question, and somebody answers it after a while. */
  #see(session: SeenSession, line: Line): void {
    if (line.type !== 'permission_request') return
    const { world } = this.#parts
    const { requestId } = line.permissionRequest
    const outcome = world.chance(0.8) ? 'allowed' : 'rejected'
    this.#underWay++
    world.at(world.now + world.between(200, 15_000), this.life, () => {
      void this.perform(session.id, 'permission.answer', { request_id: requestId, outcome }).finally(
        () => this.#underWay--,
      )
    })
  }

  async #insist(sessionId: string, work: (node: ClusterNode) => Promise<unknown>): Promise<Outcome> {
    const { world, referee } = this.#parts
    const endMs = world.now + patienceMs
    for (let attempts = 1; ; attempts++) {
      const answer = await this.#ask(this.#nodeFor(sessionId), work)
      if (answer.type === 'ack' && answer.ack.ok) return { type: 'done', ack: answer.ack, attempts }
      const code = codeOf(answer)
      this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
      if (wrong.has(code)) referee.problem(`a client was refused with ${code}: ${JSON.stringify(answer)}`)
      if (final.has(code)) return { type: 'refused', code, attempts }
      const isEnough = world.now > endMs || (!this.isClosing && world.chance(0.01))
      if (isEnough) return { type: 'given-up', code, attempts }
      await pause(world.between(50, 2000))
    }
  }

  /** Mostly the node that has the session. */
  #nodeFor(sessionId: string): ClusterNode {
    const { world, database, nodes } = this.#parts
    const owner = database.find('local', sessionId)?.node
    const known = world.chance(0.9) ? nodes().find(({ link }) => link.node === owner && owner !== undefined) : undefined
    return known ?? world.pick(nodes())
  }

  #ask(node: ClusterNode, work: (node: ClusterNode) => Promise<unknown>): Promise<Answer> {
    const { world } = this.#parts
    const isLost = world.chance(0.005)
    const answerMs = world.between(3000, 30_000)
    return new Promise((resolve) => {
      const limit = setTimeout(() => resolve({ type: 'silence' }), answerMs)
      const answer = (given: Answer): void => {
        if (isLost && world.chance(0.5)) return
        world.at(world.now + world.between(1, 20), this.life, () => {
          clearTimeout(limit)
          resolve(given)
        })
      }
      if (isLost) return
      world.at(world.now + world.between(1, 20), node.life, () => {
        work(node).then(
          (result) => answer({ type: 'ack', ack: (result ?? { id: '', ok: true }) as Ack }),
          (error: unknown) => answer({ type: 'failed', code: errorCode(error) }),
        )
      })
    })
  }

  async #watched<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++
    try {
      return await work()
    } finally {
      this.#underWay--
    }
  }
}

export function pause(ms: number): Promise<void> {
  return systemClock.wait(ms)
}

function codeOf(answer: Answer): string {
  if (answer.type === 'ack') return answer.ack.error?.type ?? 'unknown'
  return answer.type === 'failed' ? answer.code : 'silence'
}

function errorCode(error: unknown): string {
  if (error instanceof RequestProblem) return error.problem.type
  if (error instanceof SessionError) return error.code
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
