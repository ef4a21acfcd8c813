import { fork, type ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { readLog } from '../sync/stage.ts'
import type { Evidence, SentMessage, Stop } from './evidence.ts'
import type { HistoryFigures, HistoryResult } from './history.ts'
import { judge } from './judge.ts'
import type { OwnerKind, Told, WhenBusy } from './owners.ts'
import type { OrderBody, OwnerMethod, Reply, Sight } from './words.ts'
import { filler } from './world.ts'

const program = fileURLToPath(new URL('owner-process.ts', import.meta.url))
const processCount = 3
const maxSeats = 6
/** A session that another process has, an owner that has left, a process that has died. */
const expectedRefusals = new Set([
  ...['session-busy', 'session-closed', 'session-owned', 'read-only', 'AbortError', 'OwnerLeft', 'SessionSuspended'],
  ...['cancelled', 'already-resolved', 'request-not-found', 'closed', 'killed', 'shutting-down', 'unreachable'],
])

/** A process with owners in it, seen from whoever is going to kill it. */
class OwnerProcess {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  readonly #closed: Promise<void>
  #orders = 0

  constructor(compileCache: string) {
    this.#child = fork(program, {
      execArgv: ['-C', '@tapetree/source'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child.on('message', (reply: Reply) => this.#take(reply))
    this.#closed = new Promise((resolve) => {
      this.#child.on('close', () => {
        for (const id of this.#waiting.keys()) this.#take({ id, ok: false, code: 'killed', message: 'It was killed.' })
        resolve()
      })
    })
  }

  async order(body: OrderBody): Promise<unknown> {
    const id = ++this.#orders
    const { promise, resolve } = Promise.withResolvers<Reply>()
    this.#waiting.set(id, resolve)
    // One that was killed answers by its end.
    if (this.#child.connected) this.#child.send({ ...body, id }, () => undefined)
    const reply = await promise
    if (reply.ok) return reply.result
    throw Object.assign(new Error(reply.message), { code: reply.code })
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }

  #take(reply: Reply): void {
    this.#waiting.get(reply.id)?.(reply)
    this.#waiting.delete(reply.id)
  }
}

/** Processes that outlive a history, unless it kills them. */
export class OwnerProcesses {
  readonly #compileCache: string
  readonly #all: OwnerProcess[] = []

  constructor(compileCache: string) {
    this.#compileCache = compileCache
  }

  at(index: number): OwnerProcess {
    this.#all[index] ??= new OwnerProcess(this.#compileCache)
    return this.#all[index]
  }

  /** As `kill -9` does. Another one takes its place. */
  async kill(index: number): Promise<void> {
    const killed = this.at(index)
    this.#all[index] = new OwnerProcess(this.#compileCache)
    await killed.kill()
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((each) => each.kill()))
  }
}

export interface ProcessHistoryOptions {
  seed: number
  folder: string
  processes: OwnerProcesses
  say?: (line: string) => void
}

/** One session, opened by many owners in several processes that are killed, with files and sockets as they are in earnest. */
export async function playProcessHistory(options: ProcessHistoryOptions): Promise<HistoryResult> {
  return new ProcessHistory(options).play()
}

interface Seat {
  number: number
  process: number
}

class ProcessHistory {
  readonly #options: ProcessHistoryOptions
  readonly #random: () => number
  readonly #evidence: Evidence = { messages: [], stops: [], ledger: [] }
  readonly #problems: string[] = []
  readonly #figures: HistoryFigures = { owners: 0, prompts: 0, runs: 0, calls: 0, kills: 0, stops: 0, refusals: 0 }
  readonly #seats: Seat[] = []
  readonly #pending = new Set<Promise<void>>()
  #sessionId = ''
  #lives = 0
  #lastRefusal = ''

  constructor(options: ProcessHistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
  }

  async play(): Promise<HistoryResult> {
    await this.#create()
    const actions = 30 + Math.floor(this.#random() * 40)
    for (let action = 0; action < actions; action++) {
      await this.#act()
      await sleep(this.#random() * 8)
    }
    await this.#finish()
    this.#evidence.ledger = readFileSync(join(this.#options.folder, 'ledger'), 'utf8').split('\n').filter(Boolean)
    const lines = readLog(this.#sessionsFolder, this.#sessionId).map((text, index): Line =>
      fromDisk(JSON.parse(text) as DiskLine, index + 1),
    )
    this.#problems.push(...judge(lines, this.#evidence))
    this.#figures.runs = lines.filter(({ type }) => type === 'run_end').length
    this.#figures.calls = this.#evidence.ledger.length
    this.#figures.stops = this.#evidence.stops.length
    return { problems: this.#problems, figures: this.#figures }
  }

  get #sessionsFolder(): string {
    return join(this.#options.folder, 'sessions')
  }

  async #create(): Promise<void> {
    mkdirSync(this.#sessionsFolder)
    writeFileSync(join(this.#options.folder, 'ledger'), '')
    const store = openFileStore({ folder: this.#sessionsFolder })
    const session = await store.create({ cwd: this.#options.folder })
    this.#sessionId = session.id
    await session.close()
    await store.close()
    for (let index = 0; index < processCount; index++) await this.#begin(index)
  }

  async #begin(index: number): Promise<void> {
    const { folder, processes } = this.#options
    const seed = Math.floor(this.#random() * 2 ** 32)
    const prefix = `${++this.#lives}-`
    await processes.at(index).order({ type: 'begin', folder, sessionId: this.#sessionId, seed, prefix })
  }

  async #act(): Promise<void> {
    if (this.#seats.length === 0) return this.#open()
    const actions: [number, () => void | Promise<void>][] = [
      [this.#seats.length < maxSeats ? 8 : 0, () => this.#open()],
      [14, () => this.#prompt(this.#any())],
      [5, () => this.#call(this.#any(), 'resume')],
      [3, () => this.#stop('abort', this.#any())],
      [3, () => this.#call(this.#any(), 'compact')],
      [2, () => this.#call(this.#any(), 'setLevel', ['high'])],
      [3, () => this.#stop('close', this.#any())],
      [1, () => this.#stop('suspend', this.#any())],
      [this.#figures.kills < 2 ? 2 : 0, () => this.#kill()],
      [6, () => this.#answer(this.#any())],
    ]
    let chosen = this.#random() * actions.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, act] of actions) {
      chosen -= weight
      if (chosen < 0) return act()
    }
  }

  #any(): Seat {
    return this.#seats[Math.floor(this.#random() * this.#seats.length)] as Seat
  }

  #open(process = Math.floor(this.#random() * processCount)): void {
    const kinds: OwnerKind[] = ['agent', 'agent', 'terminal', 'client']
    const kind = kinds[Math.floor(this.#random() * kinds.length)] as OwnerKind
    const seat: Seat = { number: ++this.#figures.owners, process }
    this.#watch(`${seat.number} opens as ${kind} in process ${process}`, async () => {
      await this.#options.processes.at(process).order({ type: 'open', seat: seat.number, kind })
      this.#seats.push(seat)
    })
  }

  #prompt(seat: Seat): void {
    const choices: WhenBusy[] = ['queue', 'queue', 'steer', 'reject']
    const whenBusy = choices[Math.floor(this.#random() * choices.length)] as WhenBusy
    const text = `m${++this.#figures.prompts} ${filler}`
    const message: SentMessage = { text, whenBusy, owner: seat.number, told: 'unknown' }
    this.#evidence.messages.push(message)
    this.#watch(`${seat.number} prompts m${this.#figures.prompts} (${whenBusy})`, async () => {
      try {
        const { type, runId } = (await this.#order(seat, 'prompt', [text, whenBusy])) as Told
        message.told = type as SentMessage['told']
        if (runId !== null) message.runId = runId
      } catch (error) {
        if ((error as { code?: string }).code === 'session-busy') message.told = 'busy'
        throw error
      }
    })
  }

  #call(seat: Seat, method: OwnerMethod, args: unknown[] = []): void {
    this.#watch(`${seat.number}: ${method}`, () => this.#order(seat, method, args))
  }

  #answer(seat: Seat): void {
    this.#watch(`${seat.number} answers`, async () => {
      const { question } = await this.#look(seat)
      if (question !== undefined) await this.#order(seat, 'answer', [question])
    })
  }

  #stop(type: 'abort' | 'close' | 'suspend', seat: Seat): void {
    if (type !== 'abort') this.#seats.splice(this.#seats.indexOf(seat), 1)
    const stop: Stop = { type, owner: seat.number, from: this.#head(), to: Infinity }
    this.#evidence.stops.push(stop)
    this.#watch(`${seat.number}: ${type}`, async () => {
      try {
        await this.#order(seat, type, [])
      } finally {
        stop.to = this.#head()
      }
    })
  }

  async #kill(): Promise<void> {
    const { process } = this.#any()
    this.#say(`process ${process} is killed`)
    const stop: Stop = { type: 'kill', owner: 0, from: this.#head(), to: Infinity }
    this.#evidence.stops.push(stop)
    this.#figures.kills++
    this.#seats.splice(0, Infinity, ...this.#seats.filter((seat) => seat.process !== process))
    await this.#options.processes.kill(process)
    stop.to = this.#head()
    await this.#begin(process)
  }

  /** One process is left, which resumes what is interrupted and delivers what waits. */
  async #finish(): Promise<void> {
    this.#say('everything comes to its end')
    while (this.#pending.size > 0) {
      const [seat] = this.#seats
      if (seat) this.#answer(seat)
      await Promise.race([sleep(20), Promise.all(this.#pending)])
    }
    for (const seat of [...this.#seats]) this.#stop('close', seat)
    await Promise.all(this.#pending)
    this.#open(0)
    await Promise.all(this.#pending)
    const [seat] = this.#seats
    if (!seat) return void this.#problems.push(`no owner could open the session: ${this.#lastRefusal}`)
    this.#call(seat, 'resume')
    await this.#idle(seat)
    this.#call(seat, 'release')
    await this.#idle(seat)
    const { waiting } = await this.#look(seat)
    if (waiting > 0) this.#problems.push(`${waiting} messages wait though nothing holds them`)
    for (let index = 0; index < processCount; index++) await this.#options.processes.at(index).order({ type: 'end' })
  }

  async #idle(seat: Seat): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      const { isBusy } = await this.#look(seat)
      this.#answer(seat)
      quiet = isBusy || this.#pending.size > 1 ? 0 : quiet + 1
      await sleep(5)
    }
    await Promise.all(this.#pending)
  }

  async #look({ number, process }: Seat): Promise<Sight> {
    return (await this.#options.processes.at(process).order({ type: 'look', seat: number })) as Sight
  }

  #order({ number, process }: Seat, method: OwnerMethod, args: unknown[]): Promise<unknown> {
    return this.#options.processes.at(process).order({ type: 'call', seat: number, method, args })
  }

  #watch(name: string, work: () => Promise<unknown>): void {
    this.#say(name)
    const attempt = (async (): Promise<void> => {
      try {
        await work()
      } catch (error) {
        this.#figures.refusals++
        const { code = '', message } = error as Error & { code?: string }
        this.#lastRefusal = `${name}: ${code} ${message}`
        this.#say(`  ${name}: ${code}`)
        if (!expectedRefusals.has(code)) this.#problems.push(this.#lastRefusal)
      }
    })()
    this.#pending.add(attempt)
    void attempt.then(() => this.#pending.delete(attempt))
  }

  /** How many lines the log has. */
  #head(): number {
    return readLog(this.#sessionsFolder, this.#sessionId).length
  }

  #say(line: string): void {
    this.#options.say?.(line)
  }
}
