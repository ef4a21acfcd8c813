// Injects faults into a cluster under load. Runs in mount and process namespaces of its own; see ../pg-faults.ts.
import { chmodSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { sizes } from '../pg-faults.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { Cluster, until } from './cluster.ts'
import { faults, type Fault, type Victim } from './faults.ts'
import { findProblems, History, type Logs, type StoredLine } from './history.ts'
import { mutants } from './mutants.ts'
import { Pooler } from './pooler.ts'
import { Router } from './router.ts'
import { WriterProcess } from './writer-process.ts'

async function injectFaults(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder } = context
  chmodSync(folder, 0o755) // the servers run as somebody else
  const startMs = performance.now()
  const cluster = await Cluster.start(folder)
  const router = await Router.start(cluster)
  const pooler = await Pooler.start(folder, router.port)
  await prepare(cluster)
  say(`a primary and two standbys started in ${seconds(performance.now() - startMs)} s`)
  const trial = new Trial(context, { cluster, router, pooler, random: context.random })
  const plan = planOf(context)
  while (plan.length > 0 && trial.problems.length === 0) {
    await trial.playRound(plan.splice(0, faultsInRound))
    if (size === 'full') say(`${trial.figures.faults} faults: ${JSON.stringify(trial.figures)}`)
  }
  await router.close()
  const { problems, figures } = trial
  for (const problem of problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

/** After so many faults, all that was written is checked and removed. */
const faultsInRound = 10
const writerCount = 3
const sessionsOfWriter = 3
/** A large run tries the default. */
const answer = { ci: { answerMs: 6000 }, full: {} }
/** A session goes on without a person within this time after a fault is over. */
const patienceMs = 60_000

interface PlannedFault {
  name: string
  inject: Fault
  /** Another writer takes over the sessions of one that is paused or killed meanwhile. */
  takeover: 'paused' | 'killed' | undefined
}

/** The kinds in turn; within a kind, each fault once before one of them comes again. */
function planOf({ size, random }: InsideContext): PlannedFault[] {
  const { faults: count, takeovers } = sizes[size]
  const kinds = Object.entries(faults).map(([kind, ofKind]) => ({ kind, ofKind: Object.entries(ofKind) }))
  const left = kinds.map((): [string, Fault][] => [])
  const withTakeover = new Set(shuffled([...Array(count).keys()], random).slice(0, takeovers))
  return Array.from({ length: count }, (_, index) => {
    const { kind, ofKind } = kinds[index % kinds.length] as (typeof kinds)[number]
    const next = left[index % kinds.length] as [string, Fault][]
    if (next.length === 0) next.push(...shuffled(ofKind, random))
    const [name, inject] = next.pop() as [string, Fault]
    const takeover = withTakeover.has(index) ? (random() < 0.6 ? 'paused' : 'killed') : undefined
    return { name: `${kind}: ${name}`, inject, takeover }
  })
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

async function prepare(cluster: Cluster): Promise<void> {
  const primary = await cluster.primary()
  await primary.ask('create database sessions')
  await migratePostgres(`postgres://admin@127.0.0.1:${primary.port}/sessions`)
  await primary.ask('create role app login in role tapetree_app')
}

class Trial {
  readonly problems: string[] = []
  readonly figures = {
    faults: 0,
    takeovers: 0,
    failovers: 0,
    acknowledged: 0,
    staleRefused: 0,
    fenced: 0,
    abandoned: 0,
    longestWaitSeconds: 0,
    mutants: 0,
  }
  readonly #context: InsideContext
  readonly #victim: Victim
  #history = new History()
  #writers: WriterProcess[] = []
  #writersMade = 0

  constructor(context: InsideContext, victim: Victim) {
    this.#context = context
    this.#victim = victim
  }

  async playRound(plan: readonly PlannedFault[]): Promise<void> {
    this.#history = new History()
    this.#writers = Array.from({ length: writerCount }, () => this.#addWriter())
    await this.#goOn('at the start', Date.now())
    for (const fault of plan) {
      if (this.problems.length > 0) break
      await this.#strike(fault)
    }
    for (const writer of this.#writers) {
      const isDrained = await Promise.race([writer.drain().then(() => true), setTimeout(90_000, false, { ref: false })])
      if (!isDrained) this.problems.push(`writer ${writer.name} has not ended its appends in 90 s`)
    }
    await this.#check()
    for (const writer of this.#writers) await writer.kill()
    await this.#removeAll()
  }

  #addWriter(): WriterProcess {
    const { router, pooler, random } = this.#victim
    const urls = [pooler.port, router.port].map((port) => `postgres://app@127.0.0.1:${port}/sessions`)
    return new WriterProcess({
      name: `w${++this.#writersMade}`,
      history: this.#history,
      begin: { urls, ...answer[this.#context.size], seed: Math.floor(random() * 2 ** 32), sessions: sessionsOfWriter },
    })
  }

  async #strike({ name, inject, takeover }: PlannedFault): Promise<void> {
    const { say, random } = this.#context
    const { cluster } = this.#victim
    const before = await cluster.primary()
    const startMs = Date.now()
    await setTimeout(random() * 500)
    const deposed = takeover && this.#takeAway(takeover)
    await inject(this.#victim)
    const overMs = Date.now()
    if (deposed) await this.#giveToAnother(deposed)
    const waitedMs = await this.#goOn(name, overMs)
    if (deposed && takeover === 'paused') await this.#wakeUp(deposed)
    await cluster.isWhole()
    const isFailover = (await cluster.primary()) !== before
    const { figures } = this
    figures.faults++
    figures.takeovers += Number(takeover !== undefined)
    figures.failovers += Number(isFailover)
    figures.longestWaitSeconds = Math.max(figures.longestWaitSeconds, seconds(waitedMs))
    const notes = [...(takeover ? [`a writer is ${takeover}`] : []), ...(isFailover ? ['failover'] : [])]
    say(
      `${name}${notes.map((note) => `, ${note}`).join('')}: over after ${seconds(overMs - startMs)} s, ` +
        `all sessions went on ${seconds(waitedMs)} s later, all nodes were back after ${seconds(Date.now() - startMs)} s`,
    )
  }

  /** A writer that is paused does not know it. */
  #takeAway(how: 'paused' | 'killed'): WriterProcess | undefined {
    const { random } = this.#context
    const writer = this.#writers.splice(Math.floor(random() * this.#writers.length), 1)[0]
    if (how === 'paused') writer?.signal('SIGSTOP')
    else void writer?.kill()
    return writer
  }

  async #giveToAnother(deposed: WriterProcess): Promise<void> {
    const { random } = this.#context
    this.#history.deposed.add(deposed.name)
    const heir = this.#writers[Math.floor(random() * this.#writers.length)]
    const sessions = [...(this.#history.sessions.get(deposed.name) ?? [])]
    heir?.tell({ type: 'take', sessions })
    this.#writers.push(this.#addWriter())
    await this.#within(`writer ${heir?.name} takes over the sessions of ${deposed.name}`, () =>
      sessions.every((session) => this.#history.sessions.get(heir?.name ?? '')?.has(session) ?? false),
    )
  }

  /** The writer goes on where it was paused, and must be fenced in each of its sessions. */
  async #wakeUp(deposed: WriterProcess): Promise<void> {
    deposed.signal('SIGCONT')
    const sessions = [...(this.#history.sessions.get(deposed.name) ?? [])]
    const isFenced = (session: string): boolean =>
      this.#history.attempts
        .values()
        .some(
          ({ writer, session: of, outcome }) =>
            writer === deposed.name && of === session && outcome.type === 'refused' && outcome.code === 'fenced',
        )
    await this.#within(`writer ${deposed.name} is fenced`, () => sessions.every(isFenced))
    await deposed.drain()
    if (deposed.failure !== undefined) this.problems.push(`writer ${deposed.name} failed: ${deposed.failure}`)
    await deposed.kill()
  }

  /** Waits until every session has acknowledged an append that began after the fault. */
  async #goOn(name: string, sinceMs: number): Promise<number> {
    const missing = (): string[] => {
      return this.#writers.flatMap((writer) => {
        const sessions = [...(this.#history.sessions.get(writer.name) ?? [])]
        if (sessions.length < sessionsOfWriter) return [`of ${writer.name}`]
        return sessions.filter((session) => !this.#history.wentOn(session, sinceMs))
      })
    }
    await this.#within(`all sessions go on after "${name}"`, () => missing().length === 0, missing)
    for (const { name: writer, failure } of this.#writers) {
      if (failure !== undefined) this.problems.push(`${name}: writer ${writer} failed: ${failure}`)
    }
    return Date.now() - sinceMs
  }

  async #within(what: string, condition: () => boolean, missing?: () => string[]): Promise<void> {
    const endMs = Date.now() + patienceMs
    while (!condition()) {
      const failed = this.#writers.find(({ failure }) => failure !== undefined)
      if (failed) this.problems.push(`writer ${failed.name} failed: ${failed.failure}`)
      if (Date.now() > endMs) this.problems.push(`not within a minute: ${what} ${missing?.().join(', ') ?? ''}`)
      if (failed || Date.now() > endMs) return
      await setTimeout(50)
    }
  }

  async #check(): Promise<void> {
    const { figures } = this
    const logs = await this.#readLogs()
    this.problems.push(...findProblems(this.#history, logs))
    for (const { isStale, outcome } of this.#history.attempts.values()) {
      if (outcome.type === 'acknowledged') figures.acknowledged++
      else if (outcome.type !== 'refused') figures.abandoned++
      else if (isStale) figures.staleRefused++
      else if (outcome.code === 'fenced') figures.fenced++
    }
    if (figures.mutants > 0 || this.problems.length > 0) return
    for (const [name, change] of Object.entries(mutants)) {
      const found = findProblems(...change(this.#history, logs))
      this.#context.say(`${name.padEnd(50)} ${found[0]?.slice(0, 120) ?? 'NOT FOUND'}`)
      if (found.length === 0) this.problems.push(`mutant "${name}" was not found`)
      figures.mutants++
    }
  }

  async #readLogs(): Promise<Logs> {
    const rows = await until('the logs are read', async () =>
      (await this.#victim.cluster.primary()).ask(
        'select s.id, e.n, e.line from tapetree.entry e join tapetree.session s using (key) order by s.id, e.n',
        'sessions',
      ),
    )
    return Map.groupBy(rows as unknown as (StoredLine & { id: string })[], ({ id }) => id)
  }

  async #removeAll(): Promise<void> {
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
    await until('all is removed', async () =>
      (await this.#victim.cluster.primary()).ask(
        `truncate ${tables.map((table) => `tapetree.${table}`).join(', ')}`,
        'sessions',
      ),
    )
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10
}

await runInside(injectFaults)
