import { newId, SessionError, text, type Durability, type Session, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { MemoryDisk, type DiskFault, type DiskStep } from '../../../packages/session/src/testing/memory-disk.ts'
import { crashesAt, type Crash } from './crashes-at.ts'
import { Ledger } from './ledger.ts'

/** The life of one process, from its start to the end of its journal. */
export interface Epoch {
  journal: readonly DiskStep[]
  ledger: Ledger
  description: string
}

/** A few processes one after another on the same disk; each finds what a crash of the one before has left. */
export async function* runScenario(random: () => number): AsyncIterable<Epoch> {
  const epochs = random() < 0.6 ? 2 : 3
  const folder = '/disk/sessions'
  let disk = newDisk()
  let ledger = new Ledger(folder)
  for (let number = 0; number < epochs; number++) {
    const world = new World({ disk, ledger, random })
    const description = await world.run()
    ledger.recordWrites(disk.journal)
    yield { journal: disk.journal, ledger, description }
    const { step, crash } = pickCrash(disk.journal, random)
    const dueAt = crash.isInsideCall ? step : step + 1
    disk = new MemoryDisk({ state: crash.state(), journal: true })
    ledger = ledger.afterCrash(disk, crash, dueAt)
  }
}

function newDisk(): MemoryDisk {
  const disk = new MemoryDisk({ journal: true })
  disk.put('/disk/readme', 'a disk that is there')
  return disk
}

/** At any kind of call, writes first of all, and as often the death of the process alone as that of the machine. */
function pickCrash(journal: readonly DiskStep[], random: () => number): { step: number; crash: Crash } {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const kinds = [...new Set(journal.map(({ operation }) => operation))]
  const kind = random() < 0.4 ? 'write' : pick(kinds)
  const step = pick([...journal.keys()].filter((index) => journal[index]?.operation === kind))
  const level = random() < 0.5 ? 'process' : 'machine'
  const crashes = [...crashesAt(journal[step] as DiskStep)]
  return { step, crash: pick(crashes.filter((crash) => crash.level === level)) }
}

/** One process: a store, a session that it writes, and other sessions that are made and moved. */
class World {
  readonly #disk: MemoryDisk
  readonly #ledger: Ledger
  readonly #random: () => number
  readonly #durability: Durability
  readonly #store: SessionStore
  #session!: Session
  readonly #entries: string[] = []
  readonly #others: string[] = []

  constructor({ disk, ledger, random }: { disk: MemoryDisk; ledger: Ledger; random: () => number }) {
    this.#disk = disk
    this.#ledger = ledger
    this.#random = random
    this.#durability = random() < 0.8 ? 'durable' : 'accepted'
    this.#store = openFileStore({ folder: ledger.folder, port: disk, lock: disk.lock, durability: this.#durability })
  }

  async run(): Promise<string> {
    const done: string[] = [this.#durability]
    await this.#start(done)
    for (let left = 2 + this.#upTo(5); left > 0; left--) {
      const [name, act] = this.#pick(Object.entries(this.#actions))
      await act()
      done.push(name)
    }
    if (this.#random() < 0.5) {
      await this.#session.close()
      done.push('close')
    }
    return done.join(', ')
  }

  async #start(done: string[]): Promise<void> {
    const known = this.#ledger.sessionIds.filter((id) => this.#disk.exists(this.#ledger.logOf(id)))
    const [main, ...others] = known
    this.#others.push(...others)
    done.push(main === undefined ? 'create' : 'open')
    if (main !== undefined) await this.#open(main)
    else await this.#create()
  }

  readonly #actions: Record<string, () => Promise<void>> = {
    say: () => this.#say(),
    'say more': () => this.#say(),
    'say many at once': async () => {
      await Promise.all(Array.from({ length: 2 + this.#upTo(3) }, () => this.#say()))
    },
    queue: async () => {
      const { id } = await this.#session.submit('wait for me')
      if (this.#random() < 0.7) this.#entries.push(await this.#session.deliver(id))
    },
    blob: () => this.#blob(),
    'large value': async () => {
      // A line this large takes long to check at every cut; rarely is enough.
      if (this.#random() < 0.05) await this.#session.appendMessage('user', [text('x'.repeat(200_000))])
      else await this.#say()
    },
    branch: () => this.#session.branch(this.#entry()),
    'branch with summary': async () => {
      this.#entries.push(await this.#session.branchWithSummary(this.#entry(), 'what was tried'))
    },
    label: async () => void (await this.#session.setLabel(this.#session.leafId ?? (await this.#said()), 'here')),
    compaction: async () => {
      const kept = this.#session.leafId ?? (await this.#said())
      this.#entries.push(await this.#session.appendCompaction('so far', kept, 1000))
    },
    derived: () => this.#session.saveDerived(),
    reopen: () => this.#reopen(),
    'failed write': () => this.#failedWrite(),
    'failed sync': async () => {
      this.#disk.failNth({ operation: 'dataSync', nth: 1, pathEnd: 'events.jsonl', error: 'EIO' })
      await this.#say()
      this.#disk.clearFaults()
    },
    'failed syncs': () => this.#failedSyncs(),
    'failed blob': () => this.#failedBlob(),
    fork: async () => {
      const id = newId()
      this.#ledger.copies.set(id, undefined)
      await this.#session.copyAll({ id })
      this.#created(id)
    },
    'branched session': async () => {
      const leafId = this.#session.leafId ?? (await this.#said())
      const id = newId()
      this.#ledger.copies.set(id, leafId)
      await this.#session.createBranchedSession(leafId, { id })
      this.#created(id)
    },
    move: () => this.#move(),
  }

  async #create(): Promise<void> {
    this.#session = await this.#store.create(this.#random() < 0.5 ? {} : { name: 'a session' })
    this.#told({ type: 'place', sessionId: this.#session.id, places: ['active'] })
    this.#opened(this.#durability)
  }

  async #open(id: string): Promise<void> {
    this.#session = await this.#store.open(id)
    // Whatever an opener is shown is on the disk.
    this.#opened('durable')
  }

  #opened(level: Durability): void {
    const { id } = this.#session
    this.#ledger.published(id, this.#disk, level)
    this.#session.subscribe(({ line }) => {
      this.#told({ type: 'line', sessionId: id, id: line.id, level: this.#durability })
    })
  }

  #created(sessionId: string): void {
    this.#told({ type: 'place', sessionId, places: ['active'] })
    this.#ledger.published(sessionId, this.#disk, this.#durability)
    this.#others.push(sessionId)
  }

  async #say(): Promise<void> {
    this.#entries.push(await this.#session.appendMessage('user', [text('word '.repeat(1 + this.#upTo(30)))]))
  }

  async #said(): Promise<string> {
    await this.#say()
    return this.#entries.at(-1) as string
  }

  async #blob(): Promise<void> {
    const bytes = Buffer.from(`picture ${this.#random()}`)
    const blob = await this.#session.putBlob(bytes)
    this.#ledger.blobs.set(blob.sha256, bytes)
    this.#told({ type: 'blob', sessionId: this.#session.id, sha256: blob.sha256 })
    const image = { source: { type: 'blob', mediaType: 'image/png', ...blob } } as const
    this.#entries.push(await this.#session.appendMessage('user', [{ type: 'image', image }]))
  }

  async #reopen(): Promise<void> {
    const { id } = this.#session
    await this.#session.close()
    await this.#open(id)
  }

  /** The disk is full for a moment, maybe also for cutting back; then the session goes on. */
  async #failedWrite(): Promise<void> {
    const kinds = [{ error: 'ENOSPC' }, { short: this.#upTo(40) }, { error: 'EIO', short: this.#upTo(40) }]
    this.#disk.failNth({ operation: 'write', nth: 1, pathEnd: 'events.jsonl', ...this.#pick(kinds) })
    if (this.#random() < 0.5) this.#disk.failNth({ operation: 'truncate', nth: 1, error: 'EIO' })
    await this.#refused(() => this.#say())
    this.#disk.clearFaults()
    await this.#say()
  }

  /** After the second one the session is over; whoever opens it again goes on. */
  async #failedSyncs(): Promise<void> {
    const fault: DiskFault = { operation: 'dataSync', nth: 1, times: 2, pathEnd: 'events.jsonl', error: 'EIO' }
    this.#disk.failNth(fault)
    if (this.#durability === 'accepted') await this.#say()
    else {
      await this.#refused(() => this.#say())
      await this.#refused(() => this.#say())
    }
    this.#disk.clearFaults()
    await this.#reopen()
  }

  async #failedBlob(): Promise<void> {
    const operation = this.#pick(['write', 'dataSync', 'rename', 'syncFolder', 'create'] as const)
    this.#disk.failNth({ operation, nth: 1, error: 'EIO' })
    // Also what is written for others to find, such as the owner, may take the fault; a blob that is there needs no write.
    await this.#blob().catch(() => undefined)
    this.#disk.clearFaults()
    await this.#blob()
  }

  async #move(): Promise<void> {
    const sessionId = this.#others.at(-1)
    if (sessionId === undefined) return this.#say()
    const way = this.#pick([
      ['archive', 'trash', 'active'],
      ['trash', 'active'],
      ['trash', 'archive'],
    ] as const)
    let from: 'active' | 'archive' | 'trash' = 'active'
    for (const to of way) {
      this.#told({ type: 'place', sessionId, places: [from, to] })
      const move = { archive: 'archive', trash: 'delete', active: 'restore' } as const
      await this.#store[move[to]](sessionId)
      this.#told({ type: 'place', sessionId, places: [to] })
      from = to
    }
    if (from !== 'active') this.#others.pop()
  }

  async #refused(act: () => Promise<unknown>): Promise<void> {
    const error: unknown = await act().then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!(error instanceof SessionError))
      throw new Error(`The caller was not told of a failed append: ${String(error)}`)
  }

  #told(fact: Parameters<Ledger['told']>[0]): void {
    this.#ledger.told(fact, this.#disk)
  }

  #entry(): string | null {
    return this.#entries.length === 0 ? null : this.#pick(this.#entries)
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#upTo(list.length)] as T
  }

  #upTo(limit: number): number {
    return Math.floor(this.#random() * limit)
  }
}
