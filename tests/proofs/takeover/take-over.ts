// Lets one server after the other die with 200 running sessions. Runs in process namespaces of its own; see ../takeover.ts.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { NatsProcess } from '../../../packages/server/src/bus/testing/nats-process.ts'
import { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { maxTries } from '../../../scripts/figure/tries.ts'
import { sizes } from '../takeover.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { BareTakeover, type BareTimes } from './bare.ts'
import { ServedNode } from './served-node.ts'
import { endless, promptOf } from './words.ts'
import { Writers } from './writers.ts'

const sessionCount = 200
const leaseMs = 3000
/** After the end of the lease, and after what a bare takeover beside it needs more than at its best. */
const limits = { firstMs: 1000, lastMs: 5000 }
/** Each session writes more than a line each second. */
const stepMs = 1500
/** What a server has done before it takes over others' work: nothing of it is slow because it is new. */
const warmUp = { sessions: 20, calls: 4, stepMs: 20 }

type Kind = 'killed' | 'paused'

interface Taken {
  kind: Kind
  firstMs: number
  medianMs: number
  lastMs: number
  bare: BareTimes
  /** How much longer than at its best the bare takeover needed. */
  excess: BareTimes
}

async function takeOver(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder } = context
  chmodSync(folder, 0o755) // the database runs as somebody else
  const trial = await Trial.start(context)
  const { kills, pauses } = sizes[size]
  const plan: Kind[] = [...Array<Kind>(kills).fill('killed'), ...Array<Kind>(pauses).fill('paused')]
  for (const kind of shuffled(plan, context.random)) {
    if (trial.problems.length > 0) break
    await trial.strikeInTime(kind)
  }
  await trial.check()
  const { problems, figures } = trial
  for (const problem of problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  return { ok: problems.length === 0, figures: { ...figures(), problems: problems.length } }
}

/** One server has all sessions, and another one is ready to take them over. */
class Trial {
  readonly problems: string[] = []
  readonly #context: InsideContext
  readonly #database: PostgresServer
  readonly #nats: NatsProcess
  readonly #writers: Writers
  readonly #bare: BareTakeover
  readonly #taken: Taken[] = []
  #owner: ServedNode
  #heir: ServedNode
  /** Takes the place of one that is killed. */
  #next: ServedNode
  #nodesMade = 0
  #jobs = 0
  #linesOfLedger = 0

  private constructor(
    context: InsideContext,
    parts: { database: PostgresServer; nats: NatsProcess; writers: Writers; bare: BareTakeover },
  ) {
    this.#context = context
    this.#database = parts.database
    this.#nats = parts.nats
    this.#writers = parts.writers
    this.#bare = parts.bare
    this.#owner = this.#load()
    this.#heir = this.#load()
    this.#next = this.#load()
  }

  static async start(context: InsideContext): Promise<Trial> {
    const folder = join(context.folder, 'database')
    mkdirSync(folder)
    const startMs = performance.now()
    const database = await PostgresServer.start({ isDurable: true, folders: [folder] })
    await database.admin('create database sessions')
    await migratePostgres(database.urlFor('admin', 'sessions'))
    await database.admin('create role app login in role tapetree_app')
    const writers = await Writers.watch(await database.connect('admin', 'sessions'))
    const bare = await BareTakeover.start(database, sessionCount)
    const trial = new Trial(context, { database, writers, bare, nats: await NatsProcess.start() })
    writeFileSync(trial.#ledger, '')
    await Promise.all([trial.#serve(trial.#owner), trial.#serve(trial.#heir)])
    await trial.#prompt(trial.#owner, { sessions: sessionCount, calls: endless, stepMs })
    context.say(`${sessionCount} sessions started in ${seconds(performance.now() - startMs)} s`)
    return trial
  }

  /** What is too late is tried again: others use this machine too, and the bare takeover may have been spared. */
  async strikeInTime(kind: Kind): Promise<void> {
    for (let tries = 1; ; tries++) {
      const taken = await this.#strike(kind)
      const { firstMs, lastMs, excess } = taken
      const mayTake = {
        firstMs: leaseMs + limits.firstMs + excess.firstMs,
        lastMs: leaseMs + limits.lastMs + excess.lastMs,
      }
      const late = [
        ...(firstMs > mayTake.firstMs ? [`the first session went on after ${firstMs} ms, not ${mayTake.firstMs}`] : []),
        ...(lastMs > mayTake.lastMs ? [`the last session went on after ${lastMs} ms, not ${mayTake.lastMs}`] : []),
      ]
      if (late.length > 0 && this.problems.length === 0 && tries < maxTries) {
        this.#context.say(`${late.join(', ')}; once more`)
        continue
      }
      this.#taken.push(taken)
      this.problems.push(...late)
      return
    }
  }

  async #strike(kind: Kind): Promise<Taken> {
    const { say, random } = this.#context
    const [victim, heir] = [this.#owner, this.#heir]
    await this.#within('all sessions are at work', async () => (await victim.working()) === sessionCount)
    await this.#writers.forget()
    // Anywhere between two signs of life.
    await setTimeout(random() * 1000)
    const struckMs = Date.now()
    await (kind === 'killed' ? victim.kill() : victim.pause())
    const bareTimes = this.#bare.run()
    const toolsBefore = this.#toolsOf(victim)
    const firsts = await this.#untilTaken(heir, struckMs)
    const after = (ms: number | undefined): number => Math.round((ms ?? Infinity) - struckMs)
    const bare = await bareTimes
    const taken = {
      bare,
      excess: this.#bare.excess(bare),
      kind,
      firstMs: after(firsts[0]),
      medianMs: after(firsts[firsts.length >> 1]),
      lastMs: after(firsts.at(-1)),
    }
    const wokenMs = Date.now()
    if (kind === 'paused') {
      victim.wakeUp()
      await this.#within(
        'the server that was paused has let go of its sessions',
        async () => (await victim.working()) === 0,
      )
    }
    await this.#within('every session calls a tool again', async () => this.#toolsSince(heir, struckMs) >= sessionCount)
    await this.#checkVictim(victim, { struckMs, wokenMs, toolsBefore })
    this.#owner = heir
    this.#heir = kind === 'paused' ? victim : await this.#replace()
    say(
      `${victim.name} is ${kind}: ${heir.name} wrote to the first session after ${taken.firstMs} ms, to half of them after ${taken.medianMs} ms, to the last after ${taken.lastMs} ms; the bare takeover took ${bare.firstMs} and ${bare.lastMs} ms`,
    )
    return taken
  }

  /** At the end: every call ran once at most, and not before the log said so. */
  async check(): Promise<void> {
    // Before the log, which goes on.
    const ran = Map.groupBy(this.#readLedger(), ({ call }) => call)
    const rows = await this.#database.admin(
      `select line::jsonb #>> '{tool_start,call_id}' as call from tapetree.entry where line like '%"type":"tool_start"%'`,
      'sessions',
    )
    const started = new Set(rows.map(({ call }) => String(call)))
    this.#linesOfLedger = ran.size
    for (const [call, runs] of ran) {
      if (runs.length > 1) this.problems.push(`call ${call} ran ${runs.length} times`)
      if (!started.has(call)) this.problems.push(`call ${call} ran, and the log does not say so`)
    }
  }

  readonly figures = (): Record<string, number> => {
    const of = (kind: Kind): Record<string, number> => {
      const taken = this.#taken.filter((each) => each.kind === kind)
      const most = (name: 'firstMs' | 'medianMs' | 'lastMs'): number => Math.max(...taken.map((each) => each[name]))
      const bare = taken.map((each) => each.bare)
      return {
        [kind]: taken.length,
        [`${kind}FirstMs`]: most('firstMs'),
        [`${kind}HalfMs`]: most('medianMs'),
        [`${kind}LastMs`]: most('lastMs'),
        [`${kind}BareFirstMs`]: Math.max(...bare.map(({ firstMs }) => firstMs)),
        [`${kind}BareLastMs`]: Math.max(...bare.map(({ lastMs }) => lastMs)),
        [`${kind}MostExcessMs`]: Math.max(...taken.map(({ excess }) => excess.lastMs)),
      }
    }
    return { ...of('killed'), ...of('paused'), toolCalls: this.#linesOfLedger }
  }

  get #ledger(): string {
    return join(this.#context.folder, 'ledger')
  }

  #load(): ServedNode {
    return new ServedNode(`node${++this.#nodesMade}`, { compileCache: join(this.#context.folder, 'compile-cache') })
  }

  async #serve(node: ServedNode): Promise<void> {
    const folder = join(this.#context.folder, node.name)
    mkdirSync(folder)
    await node.serve({
      database: this.#database.urlFor('app', 'sessions'),
      busUrl: this.#nats.url,
      folder,
      ledger: this.#ledger,
      seed: Math.floor(this.#context.random() * 2 ** 32),
    })
    await this.#prompt(node, warmUp)
    await this.#within(`${node.name} has warmed up`, async () => (await node.working()) === 0)
  }

  async #replace(): Promise<ServedNode> {
    const node = this.#next
    this.#next = this.#load()
    await this.#serve(node)
    return node
  }

  /** Creates sessions that have a job. */
  async #prompt(
    node: ServedNode,
    { sessions, ...job }: { sessions: number; calls: number; stepMs: number },
  ): Promise<void> {
    const tags = Array.from({ length: sessions }, () => `job${++this.#jobs}`).values()
    const create = async (): Promise<void> => {
      for (const tag of tags) {
        const response = await fetch(new URL('/api/sessions', node.url), {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ prompt: promptOf({ tag, ...job }) }),
        })
        if (!response.ok) throw new Error(`A session was not created: ${await response.text()}`)
      }
    }
    await Promise.all(Array.from({ length: 10 }, create))
  }

  /** Resolves when it has written to all sessions, or it takes far too long. */
  async #untilTaken(heir: ServedNode, sinceMs: number): Promise<number[]> {
    let firsts: number[] = []
    await this.#within(`${heir.name} continues all sessions`, async () => {
      firsts = await this.#writers.firstLines(heir.name, sinceMs)
      return firsts.length >= sessionCount
    })
    return firsts
  }

  /** Only what was under way when it was struck may still have reached the log, before anything of the next owner. */
  async #checkVictim(
    victim: ServedNode,
    { struckMs, wokenMs, toolsBefore }: { struckMs: number; wokenMs: number; toolsBefore: readonly unknown[] },
  ): Promise<void> {
    const stale = await this.#writers.staleLines(victim.name, struckMs)
    const late = await this.#writers.firstLines(victim.name, wokenMs)
    const tools = this.#toolsOf(victim).slice(toolsBefore.length)
    if (stale > 0) this.problems.push(`${victim.name} wrote ${stale} lines after those of the next owner`)
    if (late.length > 0) this.problems.push(`${victim.name} wrote to ${late.length} sessions after it woke up`)
    for (const { ms, call } of tools) {
      this.problems.push(`${victim.name} started the tool of ${call} ${ms - wokenMs} ms after it woke up`)
    }
  }

  /** The tools that it has started so far. */
  #toolsOf({ name }: ServedNode): { ms: number; call: string }[] {
    return this.#readLedger().filter(({ node }) => node === name)
  }

  #toolsSince(node: ServedNode, sinceMs: number): number {
    const calls = this.#readLedger().filter((each) => each.node === node.name && each.ms > sinceMs)
    return new Set(calls.map(({ call }) => call.split('-')[0])).size
  }

  #readLedger(): { ms: number; node: string; call: string }[] {
    return readFileSync(this.#ledger, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => {
        const [ms = '', node = '', call = ''] = line.split(' ')
        return { ms: Number(ms), node, call }
      })
  }

  async #within(what: string, condition: () => Promise<boolean>): Promise<void> {
    const endMs = Date.now() + patienceMs
    while (!(await condition())) {
      if (Date.now() > endMs) {
        const logs = [this.#owner, this.#heir].map(({ name, lastOutput }) => `${name}: ${lastOutput}`)
        throw new Error(`Not within ${seconds(patienceMs)} s: ${what}.\n${logs.join('\n')}`)
      }
      await setTimeout(100)
    }
  }
}

const patienceMs = 30_000

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10
}

await runInside(takeOver)
