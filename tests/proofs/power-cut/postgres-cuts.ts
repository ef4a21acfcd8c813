// Cuts the power of a PostgreSQL server and its standbys at once. Runs in namespaces of its own; see ../power-cut.ts.
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { findProblems, History, type Logs, type StoredLine } from '../pg-faults/history.ts'
import { killTree } from '../pg-faults/processes.ts'
import { WriterProcess } from '../pg-faults/writer-process.ts'
import { sizes } from '../power-cut.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { CutDisks, mountOptions } from './cut-disks.ts'

async function cutManyTimes(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder } = context
  const { postgresCuts: cuts } = sizes[size]
  chmodSync(folder, 0o755) // the servers run as somebody else
  const trial = await Trial.start(context, { folder: join(folder, 'synced'), isDurable: true })
  for (let number = 1; number <= cuts && trial.problems.length === 0; number++) {
    await trial.cutOnce(number)
    if (size === 'ci' || number % 10 === 0) say(`${number} cuts of PostgreSQL: ${JSON.stringify(trial.figures)}`)
  }
  await trial.end()
  // Servers that do not sync must lose something, or the cuts are not real.
  const careless = await Trial.start(context, { folder: join(folder, 'careless'), isDurable: false })
  await careless.cutOnce(1)
  await careless.end()
  const lost = careless.problems.length
  say(`servers that do not sync: ${careless.problems[0]?.slice(0, 150) ?? 'NOTHING WAS LOST'}`)
  for (const problem of trial.problems.slice(0, 20)) say(`LOST: ${problem}`)
  const { problems, figures } = trial
  return {
    ok: problems.length === 0 && lost > 0,
    figures: { ...figures, lostWithoutSync: lost, problems: problems.length },
  }
}

const standbys = ['one', 'two']
const writerCount = 2
/** Files for the WAL take space, and three servers share the memory of this machine. */
const settings = ['max_wal_size=64MB', 'min_wal_size=32MB', 'shared_buffers=32MB']

class Trial {
  readonly problems: string[] = []
  readonly figures = { cuts: 0, acknowledged: 0, abandoned: 0, lines: 0 }
  readonly #context: InsideContext
  readonly #disks: CutDisks
  readonly #server: PostgresServer
  readonly #isDurable: boolean
  #writersMade = 0

  private constructor(
    context: InsideContext,
    { disks, server, isDurable }: { disks: CutDisks; server: PostgresServer; isDurable: boolean },
  ) {
    this.#context = context
    this.#disks = disks
    this.#server = server
    this.#isDurable = isDurable
  }

  /** A server and two standbys, each on a disk of its own. */
  static async start(
    context: InsideContext,
    { folder, isDurable }: { folder: string; isDurable: boolean },
  ): Promise<Trial> {
    mkdirSync(folder)
    const disks = new CutDisks(folder, { count: 1 + standbys.length, megabytes: 256 })
    await disks.start(mountOptions[0] as string)
    const folders = disks.mounts.map((mount) => join(mount, 'server'))
    for (const each of folders) mkdirSync(each)
    const server = await PostgresServer.start({ isDurable, standbys, folders, settings })
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    // Without this, servers that do not sync would lose all that they were made of.
    await promisify(execFile)('sync', ['--file-system', ...disks.mounts])
    return new Trial(context, { disks, server, isDurable })
  }

  async cutOnce(number: number): Promise<void> {
    const { random, seed } = this.#context
    const history = new History()
    const writers = Array.from({ length: writerCount }, () => this.#addWriter(history))
    const count = 1 + Math.floor(random() * 1000)
    while (acknowledgedOf(history).length < count && writers.every(({ failure }) => failure === undefined)) {
      await setTimeout(5)
    }
    // What is acknowledged after this moment may or may not have been on the disks when the power went.
    const promised = new Set(acknowledgedOf(history))
    await this.#disks.cut()
    await Promise.all(writers.map((writer) => writer.kill()))
    history.forgetAcknowledged((id) => !promised.has(id))
    await this.#killServers()
    await this.#disks.putBack()
    const options = mountOptions[number % mountOptions.length] as string
    await this.#disks.start(options)
    const moment = `seed ${seed}, cut ${number} of PostgreSQL after ${promised.size} acknowledgements`
    await this.#lookAround(history, moment).catch((error: unknown) => {
      this.problems.push(`${moment}: the servers do not come back: ${String(error)}`)
    })
    for (const { failure } of writers)
      if (failure !== undefined) this.problems.push(`${moment}: a writer failed: ${failure}`)
    this.figures.cuts++
    this.figures.acknowledged += promised.size
    for (const { outcome } of history.attempts.values()) this.figures.abandoned += Number(outcome.type === 'killed')
  }

  async end(): Promise<void> {
    await this.#killServers()
    await this.#disks.end()
  }

  /** A commit waits for one standby: so one of them has all that was acknowledged, also if the server never came back. */
  async #lookAround(history: History, moment: string): Promise<void> {
    const [primary, ...others] = this.#server.nodes as [PostgresServer, ...PostgresServer[]]
    await Promise.all(others.map((standby) => this.#resume(standby)))
    const ofStandbys = await Promise.all(
      others.map(async (standby) => {
        await hasReplayed(standby)
        return findProblems(history, await readLogs(standby))
      }),
    )
    const [fewest = []] = ofStandbys.toSorted((a, b) => a.length - b.length)
    this.problems.push(...fewest.map((problem) => `${moment}, on every standby: ${problem}`))
    await this.#resume(primary)
    const logs = await readLogs(primary)
    this.problems.push(...findProblems(history, logs).map((problem) => `${moment}: ${problem}`))
    for (const lines of logs.values()) this.figures.lines += lines.length
    // Waits for a standby, as every commit does.
    await primary.admin(`truncate ${tables.map((table) => `tapetree.${table}`).join(', ')}`, 'sessions')
  }

  async #resume(node: PostgresServer): Promise<void> {
    const { mounts } = this.#disks
    const folder = join(mounts[this.#server.nodes.indexOf(node)] as string, 'server')
    // The machine has restarted: the process number in these files may be that of another process now.
    for (const file of ['data/postmaster.pid', '.s.PGSQL.5432.lock']) rmSync(join(folder, file), { force: true })
    // A server whose files are damaged may neither start nor end.
    const late = setTimeout(this.#isDurable ? 60_000 : 10_000, 'late', { ref: false })
    if ((await Promise.race([node.resume(), late])) === 'late') throw new Error('one did not start in time')
  }

  #addWriter(history: History): WriterProcess {
    const url = this.#server.urlFor('app', 'sessions')
    const seed = Math.floor(this.#context.random() * 2 ** 32)
    return new WriterProcess({
      name: `w${++this.#writersMade}`,
      history,
      begin: { urls: [url, url], seed, sessions: 4 },
    })
  }

  async #killServers(): Promise<void> {
    for (const { pid } of this.#server.nodes) if (pid !== undefined) await killTree(pid)
    for (const node of this.#server.nodes) await node.stop()
  }
}

const tables = [
  'session',
  'entry',
  'blob',
  'derived',
  'stored_size',
  'summary',
  'entry_text',
  'search_term',
  'pending_row',
  'pending_text',
  'node',
]

function acknowledgedOf(history: History): string[] {
  return [...history.attempts.values()].filter(({ outcome }) => outcome.type === 'acknowledged').map(({ id }) => id)
}

/** Resolves when a standby without its primary has read all the WAL that it has, and looks for more. */
async function hasReplayed(standby: PostgresServer): Promise<void> {
  for (;;) {
    const [row] = await standby.admin(`select wait_event from pg_stat_activity where backend_type = 'startup'`)
    if (row?.['wait_event'] === 'RecoveryRetrieveRetryInterval') return
    await setTimeout(20)
  }
}

async function readLogs(server: PostgresServer): Promise<Logs> {
  const rows = await server.admin(
    'select s.id, e.n, e.line from tapetree.entry e join tapetree.session s using (key) order by s.id, e.n',
    'sessions',
  )
  return Map.groupBy(rows as unknown as (StoredLine & { id: string })[], ({ id }) => id)
}

await runInside(cutManyTimes)
