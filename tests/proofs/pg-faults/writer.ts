// Appends to sessions in a database until it is told to stop, or killed. Reads orders from stdin and reports on stdout. Beside the sessions,
// two stores fight for one log through the port: whoever lost its claim goes on trying with its old term.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { SessionError, text, type Session, type SessionStore } from '@tapetree/session'
import { sealLine } from '@tapetree/session/format'
import type { AppendResult, WritableLog } from '@tapetree/session/log-store'
import { openPostgresStore, PostgresLogStore } from '@tapetree/session/stores/postgres'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { textOf, type Order, type Report, type WriterOptions } from './report.ts'

const scope = { tenant: 'local' }

class Writer {
  readonly #name: string
  readonly #random: () => number
  readonly #stores: readonly SessionStore[]
  readonly #work: Promise<void>[] = []
  #isDraining = false
  #count = 0

  constructor(name: string, { urls, seed, ...options }: WriterOptions) {
    this.#name = name
    this.#random = randomFrom(seed)
    this.#stores = urls.map((url) => openPostgresStore({ url, connections: 6, ...answerOf(options) }))
  }

  begin({ urls, sessions, ...options }: WriterOptions): void {
    for (let index = 0; index < sessions; index++) this.#start(this.#writeNew(this.#storeFor(index)))
    this.#start(this.#duel(urls.map((url) => new PostgresLogStore({ url, connections: 3, ...answerOf(options) }))))
  }

  take(sessions: readonly string[]): void {
    for (const [index, id] of sessions.entries()) this.#start(this.#takeOver(this.#storeFor(index), id))
  }

  async drain(): Promise<void> {
    this.#isDraining = true
    await Promise.all(this.#work)
    tell({ type: 'drained' })
  }

  #start(work: Promise<void>): void {
    this.#work.push(work)
  }

  #storeFor(index: number): SessionStore {
    return this.#stores[index % this.#stores.length] as SessionStore
  }

  async #writeNew(store: SessionStore): Promise<void> {
    const id = this.#nextId('session')
    await this.#write(await store.create({ id, cwd: '/proof' }))
  }

  async #takeOver(store: SessionStore, id: string): Promise<void> {
    while (!this.#isDraining) {
      const session = await store.open(id)
      if (session.readOnlyReason === undefined) return this.#write(session)
      await session.close()
      await setTimeout(200)
    }
  }

  async #write(session: Session): Promise<void> {
    tell({ type: 'opened', session: session.id })
    // Two appends at a time, so that one is queued behind the other.
    await Promise.all([this.#produce(session), this.#produce(session)])
  }

  /** After it was fenced it goes on for a while: every attempt must be refused. */
  async #produce(session: Session): Promise<void> {
    for (let refusals = 0; !this.#isDraining && refusals < maxRefusals;) {
      const id = this.#nextId('line')
      tell({ type: 'tried', session: session.id, id })
      try {
        const message = { role: 'user' as const, content: [text(textOf(id))] }
        const { seq } = await session.append({ type: 'message', id, message })
        tell({ type: 'acknowledged', session: session.id, id, seq })
      } catch (error) {
        const code = error instanceof SessionError ? error.code : 'other'
        tell({ type: 'refused', session: session.id, id, code, message: (error as Error).message })
        if (code === 'fenced') refusals++
      }
      await setTimeout(this.#random() * maxPauseMs)
    }
  }

  /** The stores claim a log from each other in turn. The one that holds it appends; then the other one tries with its old term. */
  async #duel(ports: readonly PostgresLogStore[]): Promise<void> {
    const session = this.#nextId('duel')
    const header = { type: 'session', id: session, format: 1, timestamp: new Date().toISOString() }
    await ports[0]?.create(scope, session, sealLine(header, 1))
    let old: { log: WritableLog; term: number } | undefined
    for (let turn = 0; !this.#isDraining; turn++) {
      const port = ports[turn % ports.length] as PostgresLogStore
      const claim = await port.claim(scope, session, { insist: true })
      if (claim.type !== 'claimed') throw new Error(`a claim that insists was refused: ${claim.owner.reason}`)
      const { log } = claim
      const term = log.term ?? 0
      let head = await lengthOf(log)
      for (let count = 0; count < 3 && !this.#isDraining; count++) {
        // The former owner knows the head: its term alone can stop it.
        if (old) await this.#tryPort({ ...old, session, head, isStale: true })
        const result = await this.#tryPort({ log, session, head, term })
        if (result.type !== 'appended') break
        head++
        await setTimeout(this.#random() * 2 * maxPauseMs)
      }
      old = { log, term }
    }
  }

  async #tryPort({ log, session, head, term, isStale }: PortTry): Promise<AppendResult> {
    const id = this.#nextId(isStale ? 'stale' : 'line')
    tell({ type: 'tried', session, id, ...(isStale && { isStale }) })
    const line = sealLine({ type: 'message', id, parent_id: null, text: textOf(id) }, head + 1)
    const result = await log.append([line], { term, head, durability: 'durable' })
    if (result.type === 'appended') tell({ type: 'acknowledged', session, id, seq: head + 1 })
    else if (result.type === 'unknown') tell({ type: 'abandoned', session, id })
    else {
      const message = result.type === 'fenced' ? result.reason : String(result.cause)
      tell({ type: 'refused', session, id, code: result.type, message })
    }
    return result
  }

  #nextId(kind: string): string {
    return `${kind}-${this.#name}-${++this.#count}`
  }
}

interface PortTry {
  log: WritableLog
  session: string
  head: number
  term: number
  isStale?: true
}

const maxPauseMs = 60
const maxRefusals = 5

function answerOf({ answerMs }: { answerMs?: number }): { answerMs?: number } {
  return answerMs === undefined ? {} : { answerMs }
}

async function lengthOf(log: WritableLog): Promise<number> {
  let length = 0
  for await (const lines of log.lines(0)) length += lines.length
  return length
}

/** Returns when the reader's end has it; a full pipe is tried again. */
function tell(report: Report): void {
  const bytes = Buffer.from(`${JSON.stringify(report)}\n`)
  for (let sent = 0; sent < bytes.length;) {
    try {
      sent += writeSync(1, bytes, sent)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') process.exit(2)
    }
  }
}

function fail(error: unknown): void {
  tell({ type: 'failed', reason: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  process.exit(1)
}

process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)
process.stdin.on('end', () => process.exit(0)) // whoever started us is gone
tell({ type: 'ready' })
let writer: Writer | undefined
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as Order
  if (order.type === 'begin') {
    writer = new Writer(order.name, order)
    writer.begin(order)
  } else if (order.type === 'take') writer?.take(order.sessions)
  else void writer?.drain()
}
