import type { Connection, ConnectionPool } from '../../../packages/session/src/stores/postgres/database.ts'
import type { ModelledDatabase } from './modelled-database.ts'
import { Life, type World } from './world.ts'

/** The way between a process and the database. Times are those of the world. */
export interface Link {
  life: Life
  /** Nothing reaches the database before. */
  upCutUntil: number
  /** No answer comes back before. */
  downCutUntil: number
  /** Connections break often before. */
  flakyUntil: number
  /** As the database knows the process. */
  node?: string
}

/** How long a connection may take to open, and a caller may wait for a free one. As in the store. */
const connectMs = 5000

/** Loses, delays and breaks what goes to the database and what comes back. */
export class Network {
  readonly #world: World
  readonly #database: ModelledDatabase
  /** What is under way belongs to nobody, so that it arrives even if its sender has died. */
  readonly #air = new Life('network')
  /** Nobody reaches the database before. */
  downUntil = 0
  /** Everything takes this much longer. */
  slowness = 1
  /** Connections that are older than this are broken. */
  #brokenBefore = 0
  statements = 0

  constructor(world: World, database: ModelledDatabase) {
    this.#world = world
    this.#database = database
  }

  linkOf(life: Life): Link {
    return { life, upCutUntil: 0, downCutUntil: 0, flakyUntil: 0 }
  }

  /** The database is restarted: all connections break, and new ones are refused until then. */
  stopDatabase(until: number): void {
    this.downUntil = until
    this.#brokenBefore = this.#world.now
  }

  openPool(link: Link, max: number): ConnectionPool {
    return new Pool(this, link, max)
  }

  isBroken(openedAt: number): boolean {
    return openedAt < this.#brokenBefore
  }

  get now(): number {
    return this.#world.now
  }

  after(link: Link, ms: number, call: () => void): void {
    this.#world.at(this.#world.now + ms, link.life, call)
  }

  /** Milliseconds of one way. */
  latency(): number {
    const { random } = this.#world
    const usual = 0.5 + random() * 2
    return (random() < 0.002 ? 50 + random() * 1500 : usual) * this.slowness
  }

  /** Whether a connection opens now. */
  canConnect({ upCutUntil, downCutUntil }: Link): 'yes' | 'refused' | 'silent' {
    if (this.now < Math.max(upCutUntil, downCutUntil)) return 'silent'
    return this.now < this.downUntil ? 'refused' : 'yes'
  }

  /** Sends a statement. `answer` gets the rows, or the error of a connection that breaks; perhaps neither ever comes. */
  send(link: Link, openedAt: number, statement: Statement, answer: Answer): void {
    const world = this.#world
    this.statements++
    const { text, values } = statement
    if (text.includes('tapetree.beat(')) link.node = String(values[0])
    const fate = world.now < link.flakyUntil ? this.#fate() : 'well'
    const breaks = (ms: number): void => this.after(link, ms, () => answer(reset(), undefined))
    let arrives = world.now + this.latency()
    if (world.now < link.upCutUntil) {
      // A connection that is cut off sends again when it can, unless it has been given up by then.
      if (world.chance(0.5)) return
      arrives = link.upCutUntil + this.latency() * 20
    }
    if (fate === 'lost') return breaks(this.latency())
    if (fate === 'late') {
      breaks(this.latency())
      arrives += world.between(0, 40_000)
    }
    world.at(
      arrives,
      this.#air,
      () => {
        if (world.now < this.downUntil || (this.isBroken(openedAt) && fate !== 'late')) return breaks(this.latency())
        const rows = this.#database.run(text, values, link)
        if (fate === 'late' || fate === 'silent') return
        if (fate === 'unanswered') return breaks(this.latency())
        let back = this.latency()
        if (world.now < link.downCutUntil) {
          if (world.chance(0.5)) return
          back += link.downCutUntil - world.now
        }
        this.after(link, back, () => answer(undefined, rows))
      },
      { isPlain: true },
    )
  }

  #fate(): 'well' | 'lost' | 'late' | 'unanswered' | 'silent' {
    const drawn = this.#world.random()
    if (drawn < 0.04) return 'lost'
    if (drawn < 0.08) return 'late'
    if (drawn < 0.12) return 'unanswered'
    return drawn < 0.13 ? 'silent' : 'well'
  }
}

interface Statement {
  text: string
  values: readonly unknown[]
}

type Answer = (error: Error | undefined, rows: Record<string, unknown>[] | undefined) => void

/** As the pool of `pg`, as far as the store uses it. */
class Pool implements ConnectionPool {
  readonly network: Network
  readonly link: Link
  readonly #max: number
  readonly #idle: ModelledConnection[] = []
  readonly #waiting: (() => void)[] = []
  #open = 0

  constructor(network: Network, link: Link, max: number) {
    this.network = network
    this.link = link
    this.#max = max
  }

  connect(): Promise<Connection> {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      if (!this.network.isBroken(idle.openedAt)) return Promise.resolve(idle)
      this.#open--
    }
    if (this.#open < this.#max) return this.#dial()
    return new Promise((resolve, reject) => {
      const next = (): void => {
        clearTimeout(limit)
        resolve(this.connect())
      }
      const limit = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(next), 1)
        reject(new Error('timeout exceeded when trying to connect'))
      }, connectMs)
      this.#waiting.push(next)
    })
  }

  async end(): Promise<void> {}

  /** A connection is free again, or gone. */
  take(connection: ModelledConnection, isBroken: boolean): void {
    if (isBroken) this.#open--
    else this.#idle.push(connection)
    this.#waiting.shift()?.()
  }

  #dial(): Promise<Connection> {
    this.#open++
    return new Promise((resolve, reject) => {
      const { network, link } = this
      const end = (ms: number, message: string): void =>
        network.after(link, ms, () => {
          this.#open--
          reject(new Error(message))
          this.#waiting.shift()?.()
        })
      const way = network.canConnect(link)
      if (way === 'silent') return end(connectMs, 'timeout exceeded when trying to connect')
      if (way === 'refused') return end(network.latency(), 'connect ECONNREFUSED')
      network.after(link, 2 * network.latency(), () => resolve(new ModelledConnection(this)))
    })
  }
}

class ModelledConnection implements Connection {
  readonly openedAt: number
  readonly #pool: Pool
  #reject: ((error: Error) => void) | undefined
  #isBroken = false

  constructor(pool: Pool) {
    this.#pool = pool
    this.openedAt = pool.network.now
  }

  query(text: string, values: unknown[] = []): Promise<{ rows: Record<string, unknown>[] }> {
    return new Promise((resolve, reject) => {
      if (this.#isBroken) return reject(reset())
      this.#reject = reject
      const { network, link } = this.#pool
      network.send(link, this.openedAt, { text, values }, (error, rows) => {
        this.#reject = undefined
        this.#isBroken ||= error !== undefined
        if (rows) resolve({ rows })
        else reject(error)
      })
    })
  }

  release(isBroken = false): void {
    this.#pool.take(this, isBroken || this.#isBroken)
  }

  async end(): Promise<void> {
    this.#isBroken = true
    this.#reject?.(new Error('Connection terminated'))
  }
}

function reset(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}
