// Injects faults into a service under load. Runs in mount, process and network namespaces of its own; see ../cluster-faults.ts.
import { chmodSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { FigureResult } from '../../../scripts/figure/figure.ts'
import { sizes } from '../cluster-faults.ts'
import { differenceOf, foldOf } from '../sync/referee.ts'
import { runInside, type InsideContext } from '../writer/own-mounts.ts'
import { faults } from './faults.ts'
import { judge, type Evidence, type StoredLine } from './judge.ts'
import { mutants } from './mutants.ts'
import { Service } from './service.ts'
import { WatchedSession } from './watched-session.ts'

async function injectFaults(context: InsideContext): Promise<FigureResult> {
  const { say, size, folder, random } = context
  chmodSync(folder, 0o755) // the database runs as somebody else
  const startMs = performance.now()
  const service = await Service.start(folder, random)
  say(`a service on eight machines started in ${seconds(performance.now() - startMs)} s`)
  const figures = newFigures()
  const plan = planOf(sizes[size].faults, random)
  let trial: Trial
  do {
    trial = new Trial(context, { service, figures })
    await trial.begin()
    for (const name of plan.splice(0, faultsPerTrial)) if (trial.problems.length === 0) await trial.strike(name)
    await trial.check()
    if (plan.length === 0) trial.checkMutants()
    await trial.end()
  } while (plan.length > 0 && trial.problems.length === 0)
  const { problems } = trial
  for (const problem of problems.slice(0, 20)) say(`PROBLEM: ${problem}`)
  if (problems.length > 0) await trial.explainProblems()
  return { ok: problems.length === 0, figures: { ...figures, problems: problems.length } }
}

/** Each kind once before one of them comes again. */
function planOf(count: number, random: () => number): string[] {
  const left: string[] = []
  return Array.from({ length: count }, () => {
    if (left.length === 0) left.push(...shuffled(Object.keys(faults), random))
    return left.pop() as string
  })
}

function newFigures() {
  return {
    faults: 0,
    acknowledged: 0,
    refused: 0,
    toolCalls: 0,
    unknownOutcomes: 0,
    takeovers: 0,
    lines: 0,
    longestWaitSeconds: 0,
    mutants: 0,
  }
}

/** New sessions under some faults, from their first line to their judgement. */
class Trial {
  readonly #context: InsideContext
  readonly #service: Service
  readonly #sessions: WatchedSession[] = []
  readonly #problems: string[] = []
  readonly #figures: ReturnType<typeof newFigures>
  /** The calls of earlier trials. */
  readonly #ledgerStart: number
  #evidence: Evidence | undefined

  constructor(
    context: InsideContext,
    { service, figures }: { service: Service; figures: ReturnType<typeof newFigures> },
  ) {
    this.#context = context
    this.#service = service
    this.#figures = figures
    this.#ledgerStart = readLedger(service).length
  }

  get problems(): string[] {
    return [...this.#problems, ...this.#sessions.flatMap(({ problems }) => problems)]
  }

  async begin(): Promise<void> {
    const { size, say, random } = this.#context
    const startMs = Date.now()
    const urls = this.#service.machines.servers.map((_, index) => this.#service.urlOf(index))
    const open = async (index: number): Promise<void> => {
      const response = await fetch(new URL('/api/sessions', urls[index % urls.length]), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      if (!response.ok) throw new Error(`A session was not created: ${await response.text()}`)
      const { id } = (await response.json()) as { id: string }
      const session = new WatchedSession(id, { random, pauseMs: pausePerSessionMs * sizes[size].sessions })
      this.#sessions.push(session)
      await session.connect(urls)
    }
    const indexes = [...Array(sizes[size].sessions).keys()].values()
    const openNext = async (): Promise<void> => {
      for (const index of indexes) await open(index)
    }
    await Promise.all(Array.from({ length: 6 }, openNext))
    for (const session of this.#sessions) session.begin()
    await this.#goOn('at the start', startMs)
    say(
      `${this.#sessions.length} sessions with ${urls.length} clients each were at work after ${seconds(Date.now() - startMs)} s`,
    )
  }

  async strike(name: string): Promise<void> {
    const { say, random } = this.#context
    const startMs = Date.now()
    await setTimeout(random() * 500)
    const struck = await (faults[name] as (typeof faults)[string])({ service: this.#service, random })
    const overMs = Date.now()
    await this.#goOn(name, overMs)
    const waited = seconds(Date.now() - overMs)
    this.#figures.faults++
    this.#figures.longestWaitSeconds = Math.max(this.#figures.longestWaitSeconds, waited)
    say(`${name} (${struck}): over after ${seconds(overMs - startMs)} s, all sessions went on ${waited} s later`)
  }

  async check(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.drain()))
    await this.#converge()
    this.#evidence = await this.#gather()
    this.#problems.push(...judge(this.#evidence))
    this.#count(this.#evidence)
    const { faults: made, lines } = this.#figures
    this.#context.say(`after ${made} faults and ${lines} lines: ${this.problems.length} problems`)
  }

  checkMutants(): void {
    if (!this.#evidence || this.problems.length > 0) return
    for (const [name, change] of Object.entries(mutants)) {
      const [found] = judge(change(this.#evidence))
      this.#context.say(`${name.padEnd(54)} ${found?.slice(0, 110) ?? 'NOT FOUND'}`)
      if (found === undefined) this.#problems.push(`mutant "${name}" was not found`)
      this.#figures.mutants++
    }
  }

  async end(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.close()))
  }

  /** Waits until a job that was sent after the fault is done in every session. */
  async #goOn(name: string, sinceMs: number): Promise<void> {
    const endMs = Date.now() + patienceMs
    let isSlow = false
    for (const session of this.#sessions) session.hurry(sinceMs)
    for (;;) {
      const missing = this.#sessions.filter((session) => !session.wentOn(sinceMs))
      if (missing.length === 0 || this.problems.length > 0) return
      if (Date.now() > endMs) {
        this.#problems.push(
          `after "${name}", ${missing.length} sessions did not go on: ${missing.map(({ id }) => id).join(', ')}`,
        )
        return
      }
      if (!isSlow && Date.now() > sinceMs + slowMs) {
        isSlow = true
        await this.explain(missing)
      }
      await setTimeout(100)
    }
  }

  async explainProblems(): Promise<void> {
    await this.explain(this.#sessions.filter(({ id }) => this.problems.some((problem) => problem.includes(id))))
  }

  /** For the sessions that did not go on: what their clients, their logs and their servers say. */
  async explain(stuck: readonly WatchedSession[]): Promise<void> {
    const { say } = this.#context
    const logs = await this.#readLogs()
    const nowMs = Date.now()
    const after = (ms: number | undefined): string => (ms === undefined ? 'not' : `${seconds(nowMs - ms)} s ago`)
    const rows = await this.#service.ask(
      'select s.id, s.term, n.address, n.lease_until > now() as is_alive from tapetree.session s left join tapetree.node n on n.id = s.node',
    )
    say(`${stuck.length} sessions have not gone on`)
    for (const { id, jobs, clients } of stuck.slice(0, 3)) {
      say(JSON.stringify(rows.find((row) => row['id'] === id)))
      for (const { recoveries } of this.#service.allServers) {
        for (const line of recoveries.filter((each) => each.includes(id))) say(line)
      }
      const sent = jobs
        .slice(-3)
        .map(
          ({ tag, told, sentMs, doneMs }) => `${tag.slice(-3)} sent ${after(sentMs)}, ${told}, done ${after(doneMs)}`,
        )
      say(`session ${id}: ${sent.join('; ')}`)
      say(`  clients: ${clients.map((client) => JSON.stringify(client.status)).join(', ')}`)
      for (const { n, line, writer, term } of (logs.get(id) ?? []).slice(-8)) {
        const { type, timestamp } = JSON.parse(line) as { type: string; timestamp: string }
        say(`  line ${n} of ${writer}, term ${term}, ${after(Date.parse(timestamp))}: ${type}`)
      }
    }
  }

  /** All clients show what is in the log. */
  async #converge(): Promise<void> {
    const endMs = Date.now() + patienceMs
    for (;;) {
      const logs = await this.#readLogs()
      const differences = this.#sessions.flatMap(({ id, clients }) => {
        const whole = foldOf((logs.get(id) ?? []).map(({ line }) => line))
        return clients.flatMap(({ transcript }, index) => {
          const difference = differenceOf(transcript, whole)
          return difference === undefined ? [] : [`client ${index} of ${id} does not show the log: ${difference}`]
        })
      })
      if (differences.length === 0) return
      if (Date.now() > endMs) {
        this.#problems.push(...differences.slice(0, 5))
        return
      }
      await setTimeout(500)
    }
  }

  async #gather(): Promise<Evidence> {
    return {
      logs: await this.#readLogs(),
      jobs: new Map(this.#sessions.map(({ id, jobs }) => [id, jobs])),
      ledger: readLedger(this.#service).slice(this.#ledgerStart),
      seen: new Map(this.#sessions.map(({ id, seen }) => [id, seen])),
    }
  }

  async #readLogs(): Promise<Evidence['logs']> {
    const rows = await this.#service.ask(
      `select s.id, e.n, e.line, w.writer, w.term from tapetree.entry e join tapetree.session s using (key)
       join public.written w on w.key = e.key and w.n = e.n
       where s.id in (${this.#sessions.map(({ id }) => `'${id}'`).join(', ')}) order by s.id, e.n`,
    )
    return Map.groupBy(rows as unknown as (StoredLine & { id: string })[], ({ id }) => id)
  }

  #count({ logs, jobs, ledger }: Evidence): void {
    const figures = this.#figures
    const sent = [...jobs.values()].flat()
    figures.acknowledged += sent.filter(({ told }) => told === 'acknowledged').length
    figures.refused += sent.filter(({ told }) => told === 'refused').length
    figures.toolCalls += ledger.length
    for (const lines of logs.values()) {
      figures.lines += lines.length
      figures.takeovers += new Set(lines.slice(1).map(({ term }) => term)).size - 1
      figures.unknownOutcomes += lines.filter(({ line }) => line.includes('The process ended')).length
    }
  }
}

/** The calls that have started. */
function readLedger({ ledger }: Service): string[] {
  const lines = readFileSync(ledger, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => line.split(' ')[2] ?? '')
}

/** Sessions do not grow for ever, so that 600 clients fit into memory. */
const faultsPerTrial = 30
/** More sessions send less each, so that the service is never out of breath: the proof is about faults. */
const pausePerSessionMs = 130
/** What holds up sessions for so long is looked at. */
const slowMs = 20_000
const patienceMs = 90_000

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10
}

await runInside(injectFaults)
