import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { FakeClock } from '../../../packages/agent/src/testing/fake-clock.ts'
import { DyingDisk, emptyDisk } from '../loop/dying-disk.ts'
import type { Evidence, SentMessage, Stop } from './evidence.ts'
import { judge, nameOf } from './judge.ts'
import { codeOf, openOwner, type OwnerKind, type SessionOwner, type WhenBusy } from './owners.ts'
import { filler, World, type Pace } from './world.ts'

export interface HistoryOptions {
  seed: number
  ledger: string
  /** Hears of every step. */
  say?: (line: string) => void
}

export interface HistoryResult {
  problems: string[]
  figures: HistoryFigures
}

export interface HistoryFigures {
  owners: number
  prompts: number
  runs: number
  calls: number
  kills: number
  stops: number
  refusals: number
}

const maxOwners = 5
const maxKills = 2
/** After so many turns of the event loop nothing moves any more. */
const maxIdleTurns = 4000

/** One session, opened by many owners in one process that may die, with everything else decided by the seed. */
export async function playHistory(options: HistoryOptions): Promise<HistoryResult> {
  return new History(options).play()
}

interface Seat {
  number: number
  owner: SessionOwner
}

/** One process: when it dies, nothing of it writes or is heard any more. */
class Life {
  readonly disk: DyingDisk
  readonly store: SessionStore
  readonly clock = new FakeClock()
  readonly seats: Seat[] = []
  readonly #random: () => number
  readonly #held: (() => void)[] = []
  isOpen = false

  constructor(disk: DyingDisk, random: () => number) {
    this.disk = disk
    this.store = new SessionStore(disk)
    this.#random = random
  }

  readonly pace: Pace = {
    pass: (signal) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void): (() => void) => {
          return () => {
            if (!this.disk.isDead) settle()
          }
        }
        signal?.addEventListener(
          'abort',
          end(() => reject(signal.reason as Error)),
          { once: true },
        )
        if (signal?.aborted) return end(() => reject(signal.reason as Error))()
        if (this.isOpen) return resolve()
        this.#held.push(end(resolve))
      }),
  }

  /** Lets a model or a tool go on. */
  letOneGo(): void {
    const [next] = this.#held.splice(Math.floor(this.#random() * this.#held.length), 1)
    next?.()
  }

  /** From now on nobody is held up. */
  open(): void {
    this.isOpen = true
    for (const next of this.#held.splice(0)) next()
  }
}

class History {
  readonly #options: HistoryOptions
  readonly #random: () => number
  readonly #isSlow: boolean
  readonly #isAsking: boolean
  readonly #evidence: Evidence = { messages: [], stops: [], ledger: [] }
  readonly #problems: string[] = []
  readonly #figures: HistoryFigures = { owners: 0, prompts: 0, runs: 0, calls: 0, kills: 0, stops: 0, refusals: 0 }
  #life: Life
  #pending = new Set<Promise<void>>()
  #sessionId = ''

  constructor(options: HistoryOptions) {
    this.#options = options
    this.#random = randomFrom(options.seed)
    this.#isSlow = this.#random() < 0.5
    this.#isAsking = this.#random() < 0.3
    this.#life = new Life(new DyingDisk(emptyDisk, { isSlow: this.#isSlow }), this.#random)
  }

  async play(): Promise<HistoryResult> {
    await this.#create()
    const actions = 20 + Math.floor(this.#random() * 50)
    for (let action = 0; action < actions; action++) {
      this.#act()
      for (let turns = Math.floor(this.#random() * 4); turns > 0; turns--) await turn()
    }
    if (this.#random() < 0.3) await this.#promptDuringSummary()
    await this.#finish()
    const lines = this.#lines()
    const { ledger } = this.#options
    this.#evidence.ledger = readFileSync(ledger, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    this.#problems.push(...judge(lines, this.#evidence))
    this.#figures.runs = lines.filter(({ type }) => type === 'run_end').length
    this.#figures.calls = this.#evidence.ledger.length
    this.#figures.stops = this.#evidence.stops.length
    return { problems: this.#problems, figures: this.#figures }
  }

  async #create(): Promise<void> {
    const disk = new DyingDisk(emptyDisk)
    const session = await new SessionStore(disk).create()
    this.#sessionId = session.id
    await session.close()
    this.#life = this.#lifeAfter(disk)
  }

  #lifeAfter({ remains }: DyingDisk): Life {
    return new Life(new DyingDisk(remains, { isSlow: this.#isSlow }), this.#random)
  }

  #act(): void {
    const { seats } = this.#life
    if (seats.length === 0) return this.#open()
    const actions: [number, () => void][] = [
      [4, () => this.#open()],
      [14, () => this.#prompt(this.#any())],
      [5, () => this.#resume(this.#any())],
      [3, () => this.#abort(this.#any())],
      [3, () => this.#compact(this.#any())],
      [1, () => this.#navigate(this.#any())],
      [2, () => this.#setLevel(this.#any())],
      [3, () => this.#close(this.#any())],
      [1, () => this.#suspend(this.#any())],
      [this.#figures.kills < maxKills ? 1 : 0, () => this.#kill()],
      [22, () => this.#life.letOneGo()],
      [this.#isSlow ? 40 : 0, () => this.#life.disk.finishWriting()],
      [this.#isAsking ? 10 : 0, () => this.#answer()],
    ]
    let chosen = this.#random() * actions.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, act] of actions) {
      chosen -= weight
      if (chosen < 0) return act()
    }
  }

  #any(): Seat {
    const { seats } = this.#life
    return seats[Math.floor(this.#random() * seats.length)] as Seat
  }

  #open(): void {
    const life = this.#life
    if (life.seats.length >= maxOwners) return
    const kinds: OwnerKind[] = ['agent', 'agent', 'terminal', 'server']
    const kind = kinds[Math.floor(this.#random() * kinds.length)] as OwnerKind
    const number = ++this.#figures.owners
    this.#say(`${number} opens as ${kind}`)
    const world = new World({
      store: life.store,
      sessionId: this.#sessionId,
      random: this.#random,
      pace: life.pace,
      ledger: this.#options.ledger,
      prefix: `${number}-`,
      folder: dirname(this.#options.ledger),
      isAsking: this.#isAsking,
      clock: life.clock,
    })
    this.#watch(`${number} opens`, async () => {
      const owner = await openOwner(kind, world)
      life.seats.push({ number, owner })
    })
  }

  #prompt({ number, owner }: Seat): void {
    const choices: WhenBusy[] = ['queue', 'queue', 'steer', 'reject']
    const whenBusy = choices[Math.floor(this.#random() * choices.length)] as WhenBusy
    const text = `m${++this.#figures.prompts} ${filler}`
    const message: SentMessage = { text, whenBusy, owner: number, told: 'unknown' }
    this.#evidence.messages.push(message)
    this.#say(`${number} prompts m${this.#figures.prompts} (${whenBusy})`)
    this.#watch(`${number} prompts ${text.slice(0, 4)}`, async () => {
      const { type, runId } = await owner.prompt(text, whenBusy).catch((error: unknown) => {
        if (codeOf(error) === 'session-busy') message.told = 'busy'
        throw error
      })
      message.told = type as SentMessage['told']
      if (runId !== null) message.runId = runId
    })
  }

  #resume({ number, owner }: Seat): void {
    this.#say(`${number} resumes`)
    this.#watch(`${number} resumes`, () => owner.resume())
  }

  #abort(seat: Seat): void {
    this.#stop('abort', seat, () => seat.owner.abort())
  }

  #close(seat: Seat): void {
    this.#leave(seat)
    this.#stop('close', seat, () => seat.owner.close())
  }

  #suspend(seat: Seat): void {
    this.#leave(seat)
    this.#stop('suspend', seat, () => seat.owner.suspend())
  }

  #leave(seat: Seat): void {
    const { seats } = this.#life
    seats.splice(seats.indexOf(seat), 1)
  }

  #stop(type: Stop['type'], { number }: Pick<Seat, 'number'>, work: () => Promise<unknown>): void {
    this.#say(`${number}: ${type}`)
    const { disk } = this.#life
    const stop: Stop = { type, owner: number, from: disk.lines.length, to: Infinity }
    this.#evidence.stops.push(stop)
    this.#watch(`${number}: ${type}`, async () => {
      try {
        await work()
      } finally {
        stop.to = disk.lines.length
      }
    })
  }

  #compact({ number, owner }: Seat): void {
    this.#say(`${number} compacts`)
    this.#watch(`${number} compacts`, () => owner.compact())
  }

  #navigate({ number, owner }: Seat): void {
    // An answer with open calls would have them run once more, on a branch of its own.
    const target = this.#lines().findLast((line) => line.type === 'message' && line.message.role === 'user')?.id
    if (target === undefined) return
    this.#say(`${number} navigates`)
    this.#watch(`${number} navigates`, () => owner.navigate(target))
  }

  #setLevel({ number, owner }: Seat): void {
    this.#say(`${number} sets the level`)
    this.#watch(`${number} sets the level`, () => owner.setLevel(this.#random() < 0.5 ? 'low' : 'high'))
  }

  /** Sometimes two answer at once. */
  #answer(): void {
    const [first] = this.#any().owner.session.pendingPermissions
    if (!first) return
    for (let answers = this.#random() < 0.5 ? 2 : 1; answers > 0; answers--) {
      const { number, owner } = this.#any()
      this.#say(`${number} answers ${first.callId ?? ''}`)
      this.#watch(`${number} answers`, () => owner.answer(first.requestId))
    }
  }

  #kill(): void {
    const { disk } = this.#life
    this.#say('the process dies')
    this.#figures.kills++
    this.#evidence.stops.push({ type: 'kill', owner: 0, from: disk.lines.length, to: disk.lines.length })
    disk.die()
    // Nobody hears how it went on.
    this.#pending = new Set()
    this.#life = this.#lifeAfter(disk)
  }

  /** The last that happens, so that nothing else delivers the message. */
  async #promptDuringSummary(): Promise<void> {
    await this.#settle()
    if (this.#life.seats.length === 0) return
    this.#life.isOpen = false
    this.#compact(this.#any())
    for (let turns = 0; turns < 10; turns++) {
      this.#life.disk.finishWriting()
      await turn()
    }
    this.#prompt(this.#any())
    await turn()
  }

  /** Everything comes to its end: who waits is let go, what is interrupted is resumed, what is held goes out. */
  async #finish(): Promise<void> {
    this.#say('everything comes to its end')
    await this.#settle()
    this.#checkNothingIsForgotten()
    if (this.#life.seats.length === 0) this.#open()
    await this.#settle()
    const [seat] = this.#life.seats
    if (!seat) return void this.#problems.push('no owner could open the session')
    this.#resume(seat)
    await this.#settle()
    this.#watch('the queue is released', () => seat.owner.release())
    await this.#settle()
    const { messages } = seat.owner.session.inbox
    if (messages.length > 0) this.#problems.push(`${messages.length} messages wait though nothing holds them`)
    for (const each of [...this.#life.seats]) this.#close(each)
    await this.#settle()
  }

  /** A message whose sender is still there goes out by itself, unless a stop holds the queue or a run has to be resumed first. */
  #checkNothingIsForgotten(): void {
    const { seats } = this.#life
    const session = seats[0]?.owner.session
    if (!session || session.inbox.hold || session.openRun) return
    const waiting = new Set(session.inbox.messages.map(({ message }) => message))
    const isThere = (number: number): boolean => seats.some((seat) => seat.number === number)
    for (const { text, told, owner } of this.#evidence.messages) {
      const wasAccepted = told === 'queued' || told === 'steered'
      if (wasAccepted && waiting.has(text) && isThere(owner)) {
        this.#problems.push(`message ${nameOf(text)} of owner ${owner} was ${told}, and is forgotten`)
      }
    }
  }

  /** Until nothing is pending and nothing runs. */
  async #settle(): Promise<void> {
    const life = this.#life
    life.open()
    for (let idle = 0; idle < maxIdleTurns; idle++) {
      life.disk.finishWriting()
      for (const { owner } of life.seats) {
        for (const { requestId } of owner.session.pendingPermissions)
          void owner.answer(requestId).catch(() => undefined)
        break
      }
      await turn()
      const isBusy = life.seats.some(({ owner }) => owner.isBusy)
      if (this.#pending.size === 0 && !isBusy && !life.disk.isWriting && idle > 5) return
    }
    this.#problems.push(`it does not come to its end: ${[...this.#names].join(', ')}`)
    this.#pending = new Set()
  }

  readonly #names = new Set<string>()

  /** Nobody waits for it; what it came to is known when it is over. */
  #watch(name: string, work: () => Promise<unknown>): void {
    const life = this.#life
    this.#names.add(name)
    const attempt = (async (): Promise<void> => {
      try {
        await work()
      } catch (error) {
        this.#figures.refusals++
        const code = codeOf(error)
        this.#say(`  ${name}: ${code}`)
        if (!expectedRefusals.has(code) && !life.disk.isDead) this.#problems.push(`${name}: ${String(error)}`)
      } finally {
        this.#names.delete(name)
      }
    })()
    const pending = this.#pending
    pending.add(attempt)
    void attempt.then(() => pending.delete(attempt))
  }

  #lines(): Line[] {
    const decoder = new TextDecoder()
    return this.#life.disk.lines.map(({ bytes }, index) =>
      fromDisk(JSON.parse(decoder.decode(bytes)) as DiskLine, index + 1),
    )
  }

  #say(line: string): void {
    this.#options.say?.(`${String(this.#life.disk.lines.length).padStart(4)} ${line}`)
  }
}

/** The ways in which it may be said that something cannot be done now. */
const expectedRefusals = new Set([
  'session-busy',
  'session-closed',
  'AbortError',
  'OwnerLeft',
  'SessionSuspended',
  'cancelled',
  'already-resolved',
])

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
