import { planResume } from '@tapetree/agent/run'
import { SessionStore, type Session } from '@tapetree/session'
import { Database } from '../../../packages/session/src/stores/postgres/database.ts'
import { PostgresLogStore } from '../../../packages/session/src/stores/postgres/postgres-store.ts'
import { Clients, pause } from './clients.ts'
import { ClusterNode } from './cluster.ts'
import { judge } from './judge.ts'
import { ModelledDatabase, type DatabaseRules } from './modelled-database.ts'
import { Network } from './network.ts'
import { name, Referee, type RefereeFigures, type SeenSession } from './referee.ts'
import { Life, World } from './world.ts'

export interface HistoryOptions {
  seed: number
  nodes: number
  hours: number
  /** How many sessions are in use at a time. */
  sessions: number
  /** Milliseconds between two faults, on average. */
  faultEveryMs: number
  /** Rules of the database that a fault has switched off. */
  rules?: Partial<DatabaseRules>
  say?: (line: string) => void
}

export interface HistoryResult {
  problems: string[]
  /** The same for the same seed. */
  digest: string
  figures: HistoryFigures
}

interface HistoryFigures extends RefereeFigures {
  sessions: number
  messages: number
  faults: number
  statements: number
}

const hourMs = 60 * 60_000
/** A server looks for abandoned sessions each second. Here one of the nodes does, this often. */
const lookEveryMs = 100
/** A history with so many problems is over. */
const maxProblems = 5
/** After this long without a line, nobody works on a session. */
const quietMs = 120_000
/** A cluster without faults finishes everything within this time. */
const calmMs = 40 * 60_000

/** The life of a cluster, with everything decided by the seed. */
export async function playHistory(options: HistoryOptions): Promise<HistoryResult> {
  return new History(options).play()
}

class History {
  readonly #options: HistoryOptions
  readonly #world: World
  readonly #database: ModelledDatabase
  readonly #network: Network
  readonly #referee: Referee
  readonly #clients: Clients
  readonly #nodes: ClusterNode[] = []
  readonly #keeper = new Life('keeper')
  #faults = 0
  #lives = 0

  constructor(options: HistoryOptions) {
    this.#options = options
    this.#world = new World(options.seed, (error) =>
      this.#referee.problem(`an error that nobody handled: ${inspect(error)}`),
    )
    this.#referee = new Referee(this.#world, options.say ?? (() => undefined))
    this.#database = new ModelledDatabase({ now: () => this.#world.now, onAppend: this.#referee.appended })
    Object.assign(this.#database.rules, options.rules)
    this.#referee.database = this.#database
    this.#network = new Network(this.#world, this.#database)
    this.#clients = new Clients({
      world: this.#world,
      referee: this.#referee,
      database: this.#database,
      nodes: () => this.#nodes,
    })
  }

  async play(): Promise<HistoryResult> {
    const { nodes, sessions } = this.#options
    await this.#world.play(this.#keeper, async () => {
      for (let index = 0; index < nodes; index++) await this.#start(index)
      for (let index = 0; index < sessions; index++) {
        this.#world.post(this.#clients.life, () => void this.#clients.converse())
      }
      await this.#injectFaults()
      await this.#calmDown()
    })
    const { figures, digest, problems } = this.#referee
    const { statements } = this.#network
    const { messages } = this.#clients
    return {
      problems,
      digest,
      figures: {
        ...figures,
        sessions: this.#referee.sessions.size,
        messages: messages.length,
        faults: this.#faults,
        statements,
      },
    }
  }

  get #isOver(): boolean {
    return this.#referee.problems.length >= maxProblems
  }

  /** Starts a node in this place. */
  #start(index: number): Promise<void> {
    const life = new Life(`n${index}.${++this.#lives}`)
    life.skewMs = Math.round(this.#world.between(-120_000, 120_000))
    life.rate = this.#world.between(0.999, 1.001)
    return new Promise((resolve) => {
      this.#world.post(life, () => {
        this.#nodes[index] = new ClusterNode(life, {
          world: this.#world,
          network: this.#network,
          referee: this.#referee,
          abandonedEveryMs: this.#options.nodes * lookEveryMs,
        })
        this.#world.post(this.#keeper, resolve)
      })
    })
  }

  async #injectFaults(): Promise<void> {
    const { hours, faultEveryMs } = this.#options
    const endMs = hours * hourMs
    while (!this.#isOver) {
      const ms = -Math.log(1 - this.#world.random()) * faultEveryMs
      await pause(Math.min(ms, endMs - this.#world.now))
      if (this.#world.now >= endMs) return
      this.#injectOne()
    }
  }

  #injectOne(): void {
    const world = this.#world
    this.#faults++
    const index = this.#victim()
    const node = this.#nodes[index] as ClusterNode
    const { life, link } = node
    const until = (least: number, most: number): number => world.now + world.between(least, most)
    const note = (what: string): void => this.#referee.noted(`${life.name} ${what}`)
    const faults: [number, () => void][] = [
      [20, () => this.#kill(index)],
      [25, () => this.#pause(node)],
      [8, () => (note('is stopped'), this.#stop(index))],
      [8, () => (note('is cut off'), (link.upCutUntil = link.downCutUntil = until(500, 40_000)))],
      [8, () => (note('sends nothing'), (link.upCutUntil = until(500, 40_000)))],
      [8, () => (note('hears nothing'), (link.downCutUntil = until(500, 40_000)))],
      [20, () => (note('has bad connections'), (link.flakyUntil = until(5000, 60_000)))],
      [4, () => (note('has another time'), (life.skewMs += world.between(-60_000, 60_000)))],
      [0.5, () => this.#stopDatabase()],
      [1, () => void this.#slowDown()],
    ]
    let drawn = world.random() * faults.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, inject] of faults) {
      drawn -= weight
      if (drawn < 0) return inject()
    }
  }

  /** Mostly a node that is at work. */
  #victim(): number {
    const world = this.#world
    const busy = [...this.#referee.sessions.values()].filter(({ openRun }) => openRun !== undefined)
    const chosen = busy.length > 0 && world.chance(0.7) ? world.pick(busy) : undefined
    const owner = chosen && this.#database.find('local', chosen.id)?.node
    const found = this.#nodes.findIndex(({ link }) => owner != null && link.node === owner)
    return found === -1 ? Math.floor(world.random() * this.#nodes.length) : found
  }

  #kill(index: number): void {
    const { life } = this.#nodes[index] as ClusterNode
    if (life.isDead) return
    this.#referee.noted(`${life.name} dies`)
    this.#world.kill(life)
    this.#startLater(index)
  }

  #startLater(index: number): void {
    const node = this.#nodes[index]
    this.#world.at(this.#world.now + this.#world.between(500, 60_000), this.#keeper, () => {
      if (this.#nodes[index] === node) void this.#start(index)
    })
  }

  #pause({ life }: ClusterNode): void {
    if (life.isDead || life.isPaused) return
    this.#referee.noted(`${life.name} is paused`)
    this.#world.pause(life)
    const ms = this.#world.chance(0.5) ? this.#world.between(100, 5000) : this.#world.between(3000, 40_000)
    this.#world.at(this.#world.now + ms, this.#keeper, () => {
      if (life.isDead) return
      this.#referee.noted(`${life.name} goes on`)
      this.#world.unpause(life)
    })
  }

  /** A node that is told to end has some time for it. */
  #stop(index: number): void {
    const node = this.#nodes[index] as ClusterNode
    const { life } = node
    if (life.isDead) return
    const end = (): void => {
      if (life.isDead) return
      this.#referee.noted(`${life.name} has ended`)
      this.#world.kill(life)
      this.#startLater(index)
    }
    this.#world.post(life, () => {
      void node
        .stop()
        .catch(() => undefined)
        .then(() => this.#world.post(this.#keeper, end))
    })
    this.#world.at(this.#world.now + 10_000, this.#keeper, end)
  }

  #stopDatabase(): void {
    this.#referee.noted('the database is restarted')
    this.#network.stopDatabase(this.#world.now + this.#world.between(1000, 25_000))
  }

  async #slowDown(): Promise<void> {
    this.#referee.noted('the database is slow')
    this.#network.slowness = this.#world.between(10, 400)
    await pause(this.#world.between(2000, 15_000))
    this.#network.slowness = 1
  }

  /** Without faults, everything comes to its end by itself. */
  async #calmDown(): Promise<void> {
    this.#referee.noted('no more faults')
    this.#clients.isClosing = true
    for (const { link } of this.#nodes) link.upCutUntil = link.downCutUntil = link.flakyUntil = this.#world.now
    const endMs = this.#world.now + calmMs
    const store = this.#openStore()
    while (!this.#isOver) {
      await pause(10_000)
      const open = await this.#unfinished(store)
      if (open.length === 0 && this.#clients.areDone) break
      if (this.#world.now < endMs) continue
      this.#referee.problem(`${open.map(name).join(', ')} did not come to an end`)
      break
    }
    if (!this.#isOver) await this.#judge(store)
    await store.close()
  }

  /** A store on a perfect network, to look into sessions as a person would. */
  #openStore(): SessionStore {
    const options = { url: 'keeper' }
    const link = this.#network.linkOf(this.#keeper)
    const database = new Database(options, (_, max) => this.#network.openPool(link, max))
    return new SessionStore(new PostgresLogStore(options, database))
  }

  /** Sessions at work. A person helps those that wait for one. */
  async #unfinished(store: SessionStore): Promise<SeenSession[]> {
    const found: SeenSession[] = []
    for (const session of this.#referee.sessions.values()) {
      if (this.#world.now - session.changedAt < quietMs) {
        found.push(session)
        continue
      }
      if (session.isFinished) continue
      await using opened = await store.open(session.id, { readOnly: true })
      if (await this.#help(session, opened)) found.push(session)
      else session.isFinished = true
    }
    return found
  }

  /** Does what only a person may do. False if nothing is left to do. */
  async #help(session: SeenSession, opened: Session): Promise<boolean> {
    const plan = await planResume(opened, [])
    const { messages, hold } = opened.inbox
    if (!plan && messages.length === 0) return false
    const [question] = opened.pendingPermissions
    if (question) {
      this.#referee.noted(`a person answers a question of ${name(session)}`)
      const answer = { request_id: question.requestId, outcome: 'allowed' }
      await this.#asClient(() => this.#clients.perform(session.id, 'permission.answer', answer))
      if (!plan?.needsPerson) return true
    }
    if (plan?.needsPerson) {
      this.#referee.noted(`a person resumes ${name(session)}`)
      await this.#asClient(() => this.#clients.perform(session.id, 'resume', { by_person: true }))
      return true
    }
    if (!plan && (hold !== null || messages.every(({ held }) => held))) {
      this.#referee.noted(`a person releases the queue of ${name(session)}`)
      await this.#asClient(() => this.#clients.perform(session.id, 'queue.release', {}))
      return true
    }
    const what = plan ? `run ${plan.runId}` : `${messages.length} messages`
    const row = this.#database.find('local', session.id)
    const owner = row?.node == null ? 'no node' : this.#nodes.find(({ link }) => link.node === row.node)?.life.name
    this.#referee.problem(`nobody continues ${what} of ${name(session)}, which ${owner ?? 'a dead node'} owns`)
    return true
  }

  #asClient(work: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      this.#world.post(this.#clients.life, () => void work().then(() => this.#world.post(this.#keeper, resolve)))
    })
  }

  async #judge(store: SessionStore): Promise<void> {
    for (const session of this.#referee.sessions.values()) {
      const report = await store.verify(session.id)
      if (report.damage.length > 0) this.#referee.problem(`${name(session)} is damaged: ${inspect(report.damage[0])}`)
    }
    for (const problem of judge([...this.#referee.sessions.values()], this.#referee.ledger, this.#clients.messages)) {
      this.#referee.problem(problem)
    }
  }
}

function inspect(value: unknown): string {
  return value instanceof Error ? (value.stack ?? value.message) : JSON.stringify(value)
}
