import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'

export interface BareOrder {
  /** When the victim died; its lease ends `leaseMs` later. */
  startMs: number
  victim: number
  heir: number
}

/** After the death of the victim. */
export interface BareTimes {
  firstMs: number
  lastMs: number
}

/** Shorter than the lease of a server by as much as keeps its end away from the time of a look. */
const leaseMs = 2900
const program = fileURLToPath(new URL('bare-process.ts', import.meta.url))

/**
 * A process that takes over rows of the same database server while a server takes over sessions: what both wait for, such as a
 * disk or a processor that is busy with something else, is not the fault of the server.
 */
export class BareTakeover {
  readonly #database: PostgresServer
  readonly #child: ChildProcess
  #victim = 0
  #quiet: BareTimes = { firstMs: Infinity, lastMs: Infinity }

  private constructor(database: PostgresServer, child: ChildProcess) {
    this.#database = database
    this.#child = child
  }

  static async start(database: PostgresServer, rows: number): Promise<BareTakeover> {
    await database.admin('create database bare')
    await database.admin(
      `create table public.lease (node int primary key, until timestamptz not null);
       create table public.owned (key int primary key, node int not null, term int not null);
       create table public.line (key int not null, line text not null);
       insert into public.owned select n, 0, 1 from generate_series(1, ${rows}) n`,
      'bare',
    )
    const child = fork(program, [database.urlFor('admin', 'bare')], { execArgv: ['-C', '@tapetree/source'] })
    await once(child, 'message')
    const bare = new BareTakeover(database, child)
    // Nothing of it is slow because it is new.
    await bare.run()
    bare.#quiet = { firstMs: Infinity, lastMs: Infinity }
    return bare
  }

  /** Call it when a server is struck. */
  async run(): Promise<BareTimes> {
    const [victim, heir] = [this.#victim, this.#victim + 1]
    this.#victim = heir
    const startMs = Date.now()
    await this.#database.admin(
      `insert into public.lease values (${victim}, clock_timestamp() + interval '${leaseMs} ms')`,
      'bare',
    )
    const answer = once(this.#child, 'message') as Promise<[BareTimes]>
    this.#child.send({ startMs, victim, heir } satisfies BareOrder)
    const [times] = await answer
    this.#quiet = {
      firstMs: Math.min(this.#quiet.firstMs, times.firstMs),
      lastMs: Math.min(this.#quiet.lastMs, times.lastMs),
    }
    return times
  }

  /**
   * How much later it was than at the best strike so far. It has a server beside it each time, so what that takes from it does
   * not count.
   */
  excess({ firstMs, lastMs }: BareTimes): BareTimes {
    return { firstMs: firstMs - this.#quiet.firstMs, lastMs: lastMs - this.#quiet.lastMs }
  }
}
