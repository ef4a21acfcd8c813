import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Durability } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import type { Answer, LockUse, Place, Trap } from './orders.ts'
import { WriterProcess } from './writer-process.ts'

export interface ArenaOptions {
  folder: string
  random: () => number
  /** Called for everything that must not happen. */
  complain: (problem: string) => void
}

/** The processes, kept over all rounds, and one session for each round. */
export class Arena {
  readonly #options: ArenaOptions
  readonly #tenures = new Map<string, Tenure>()
  #pool: WriterProcess[] = []
  #count = 0
  #rounds = 0

  constructor(options: ArenaOptions) {
    this.#options = options
  }

  /** A new session, and 2 to 8 processes that want it. */
  async newRound(): Promise<Round> {
    this.#rounds += 1
    this.#tenures.clear()
    const place: Place = { folder: join(this.#options.folder, `round-${this.#rounds}`), sessionId: 'session' }
    mkdirSync(place.folder)
    const store = openFileStore({ folder: place.folder })
    await (await store.create({ id: place.sessionId })).close()
    await store.close()
    const processCount = 2 + Math.floor(this.#options.random() * (maxProcesses - 1))
    return new Round({
      place,
      random: this.#options.random,
      complain: this.#options.complain,
      processes: this.#processes(processCount),
      newTenure: (process) => this.#newTenure(process),
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.#pool.map((process) => process.kill()))
  }

  /** New ones stand at the back, where they have time to start before they are needed. */
  #processes(count: number): WriterProcess[] {
    const alive = this.#pool.filter((process) => process.isAlive)
    const fresh = Array.from({ length: maxProcesses + spareProcesses - alive.length }, () => this.#start())
    this.#pool = [...alive, ...fresh]
    return this.#pool.slice(0, count)
  }

  #start(): WriterProcess {
    return WriterProcess.start((tenure, id) => this.#tenures.get(tenure)?.acknowledged.push(id))
  }

  #newTenure(process: WriterProcess): Tenure {
    this.#count += 1
    const tenure = new Tenure(`tenure-${this.#count}`, process)
    this.#tenures.set(tenure.id, tenure)
    return tenure
  }
}

const maxProcesses = 8
const spareProcesses = 2

/** One opening of one session by one process, up to its closing. */
export class Tenure {
  readonly id: string
  readonly process: WriterProcess
  /** Ids of the lines that it was told are kept. */
  readonly acknowledged: string[] = []
  isWriter = false
  /** What lies before this was there when it opened. */
  knownSize = 0
  readonly refusals: string[] = []

  constructor(id: string, process: WriterProcess) {
    this.id = id
    this.process = process
  }

  get isFenced(): boolean {
    return this.refusals.includes('fenced')
  }

  /** How many of these were acknowledged. */
  async append(options: { count?: number; size?: number; together?: boolean } = {}): Promise<number> {
    const before = this.acknowledged.length
    const { count = 1, size = 20, together = false } = options
    const answer = await this.process.tell({ type: 'append', tenure: this.id, count, size, together })
    if (answer.type === 'appended') this.refusals.push(...answer.refusals)
    return this.acknowledged.length - before
  }

  async setTraps(...traps: Trap[]): Promise<void> {
    await this.process.tell({ type: 'set-traps', traps })
  }

  async close(): Promise<Answer> {
    return this.process.tell({ type: 'close', tenure: this.id })
  }
}

export interface RoundOptions {
  place: Place
  processes: WriterProcess[]
  random: () => number
  complain: (problem: string) => void
  newTenure: (process: WriterProcess) => Tenure
}

export class Round {
  readonly place: Place
  readonly processes: WriterProcess[]
  readonly random: () => number
  readonly complain: (problem: string) => void
  readonly durability: Durability
  /** Every tenure of this round's session, for the check of its log. */
  readonly tenures: Tenure[] = []
  readonly #newTenure: (process: WriterProcess) => Tenure

  constructor(options: RoundOptions) {
    this.place = options.place
    this.processes = options.processes
    this.random = options.random
    this.complain = options.complain
    this.#newTenure = options.newTenure
    this.durability = options.random() < 0.5 ? 'durable' : 'accepted'
  }

  async open(
    process: WriterProcess,
    lock: LockUse,
    { at = this.place, traps = [], isNew = false }: { at?: Place; traps?: Trap[]; isNew?: boolean } = {},
  ): Promise<Tenure> {
    const tenure = this.#newTenure(process)
    if (at === this.place) this.tenures.push(tenure)
    const { durability } = this
    const type = isNew ? 'create' : 'open'
    const answer = await process.tell({ type, tenure: tenure.id, at, lock, durability, traps })
    if (answer.type === 'opened') {
      tenure.isWriter = answer.isWriter
      tenure.knownSize = answer.knownSize
    } else if (answer.type === 'failed' && answer.code !== 'dead' && lock !== 'defeated') {
      this.complain(`a process could not open the session: ${answer.message}`)
    }
    return tenure
  }

  /**
   * All of these try at once, the first with one kind of lock, the second with the other. Exactly one becomes the writer, or none
   * where somebody is already.
   */
  async race(
    processes: readonly WriterProcess[],
    { isHeld = false, at = this.place }: { isHeld?: boolean; at?: Place } = {},
  ): Promise<{ writer: Tenure; others: WriterProcess[] }> {
    const first = this.random() < 0.5 ? 0 : 1
    const kinds = processes.map((_, index): LockUse => {
      if (index < 2) return index === first ? 'ofd' : 'sqlite'
      return (['ofd', 'sqlite', 'usual'] as const)[Math.floor(this.random() * 3)]!
    })
    const opened = await Promise.all(processes.map((process, index) => this.open(process, kinds[index]!, { at })))
    const writers = opened.filter(({ isWriter }) => isWriter)
    const expected = isHeld ? 0 : 1
    if (writers.length !== expected) {
      this.complain(`${writers.length} writers where there should be ${expected} (${kinds.join(', ')})`)
    }
    await Promise.all(opened.filter(({ isWriter }) => !isWriter).map((tenure) => tenure.close()))
    const writer = writers[0] ?? opened[0]!
    return { writer, others: processes.filter((process) => process !== writer.process) }
  }

  async closeAll(): Promise<void> {
    for (const process of this.processes) process.resume()
    await Promise.all(this.processes.map((process) => process.tell({ type: 'set-traps', traps: [] })))
    await Promise.all(this.tenures.map((tenure) => tenure.close()))
  }

  pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)]!
  }
}
