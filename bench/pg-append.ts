import { availableParallelism } from 'node:os'
import { newId, text, type Session, type SessionStore } from '@tapetree/session'
import { sealLine, type SealedLine } from '@tapetree/session/format'
import { migratePostgres, openPostgresStore } from '@tapetree/session/stores/postgres'
import { missingPostgres, PostgresServer } from '../packages/session/src/testing/postgres-server.ts'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'

export const name = 'pg-append'
export const claim =
  'With two standbys in quorum mode, appends to PostgreSQL reach 0.8 of the rate of the bare statement, for 64 and 1,024 sessions at once.'
export const sizes = { ci: { appends: 4096, rounds: 5 }, full: { appends: 32_768, rounds: 11 } }

/** Sessions that append as fast as they can, each one line after the other. */
export async function run(context: FigureContext): Promise<FigureResult> {
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  const server = await PostgresServer.start({ isDurable: true, standbys: ['a', 'b'] })
  try {
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    const few = await measure(server, 64, context)
    const many = await measure(server, 1024, context)
    return {
      ok: few.share >= 0.8 && many.share >= 0.8,
      figures: {
        cores: availableParallelism(),
        sessions_64_per_second: few.perSecond,
        sessions_64_bare_per_second: few.barePerSecond,
        sessions_64_share: few.share,
        sessions_1024_per_second: many.perSecond,
        sessions_1024_bare_per_second: many.barePerSecond,
        sessions_1024_share: many.share,
      },
    }
  } finally {
    await server.remove()
  }
}

interface Measured {
  perSecond: number
  barePerSecond: number
  share: number
}

async function measure(server: PostgresServer, sessions: number, context: FigureContext): Promise<Measured> {
  const { appends, rounds } = sizes[context.size]
  const url = server.urlFor('app', 'sessions')
  await using store = openPostgresStore({ url, leaseMs: 60_000 })
  const opened = await openMany(server, store, sessions)
  const bare = await BareAppends.start(server, sessions)
  const each = Math.ceil(appends / sessions)
  const perAppend = (start: number): number => ((performance.now() - start) / (each * sessions)) * 1000
  const { ours, bare: bareUs } = await compare({
    label: `an append in ${sessions} sessions at once`,
    unit: 'µs',
    rounds,
    say: context.say,
    bare: async () => {
      const start = performance.now()
      await bare.appendToEach(each)
      return perAppend(start)
    },
    ours: async () => {
      const start = performance.now()
      await Promise.all(opened.map((session) => appendTo(session, each)))
      return perAppend(start)
    },
  })
  await bare.close()
  for (const session of opened) await session.close()
  return {
    perSecond: Math.round(1e6 / ours),
    barePerSecond: Math.round(1e6 / bareUs),
    share: Math.round((bareUs / ours) * 100) / 100,
  }
}

/** About 1 KB on disk, as an ordinary entry is. */
const content = 'A line of a conversation, long enough to be ordinary. '.repeat(15)

async function appendTo(session: Session, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await session.appendMessage('user', [text(content)])
}

async function openMany(server: PostgresServer, store: SessionStore, count: number): Promise<Session[]> {
  const ids = await createRows(server, `ours-${count}`, count)
  const sessions: Session[] = []
  for (let from = 0; from < count; from += 32) {
    sessions.push(...(await Promise.all(ids.slice(from, from + 32).map((id) => store.open(id)))))
  }
  return sessions
}

async function createRows(server: PostgresServer, prefix: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  const client = await server.connect('app', 'sessions')
  const headers = ids.map((id) => sealLine({ type: 'session', id, version: 1, timestamp: now(), cwd: '/c' }, 1).text)
  await client.query(
    `select tapetree.create_session('local', id, gen_random_uuid(), header) from unnest($1::text[], $2::text[]) as t (id, header)`,
    [ids, headers],
  )
  await client.end()
  return ids
}

type Client = Awaited<ReturnType<PostgresServer['connect']>>

interface BareSession {
  key: string
  seq: number
  parent: string | null
}

/** The statement that the store sends, fed with lines that are made and sealed just before, and nothing around it. */
class BareAppends {
  readonly #clients: readonly Client[]
  readonly #sessions: BareSession[]

  private constructor(clients: readonly Client[], sessions: BareSession[]) {
    this.#clients = clients
    this.#sessions = sessions
  }

  static async start(server: PostgresServer, count: number): Promise<BareAppends> {
    const ids = await createRows(server, `bare-${count}`, count)
    // As many connections as the store uses for appends.
    const clients = await Promise.all(Array.from({ length: 4 }, () => server.connect('app', 'sessions')))
    const { rows } = await (clients[0] as Client).query<{ key: string }>(
      `select (tapetree.claim_session('local', id, gen_random_uuid(), gen_random_uuid(), false)).key from unnest($1::text[]) as t (id)`,
      [ids],
    )
    return new BareAppends(
      clients,
      rows.map(({ key }) => ({ key, seq: 1, parent: null })),
    )
  }

  /** Each connection takes the sessions whose last line is stored, up to 256 at once. */
  async appendToEach(count: number): Promise<void> {
    const ready = this.#sessions.map((session) => ({ session, left: count }))
    const most = Math.min(256, Math.ceil(ready.length / this.#clients.length))
    let pending = ready.length
    const wake = new Set<() => void>()
    const lane = async (client: Client): Promise<void> => {
      while (pending > 0) {
        const batch = ready.splice(0, most)
        if (batch.length === 0) {
          await new Promise<void>((resolve) => wake.add(resolve))
          continue
        }
        await this.#append(
          client,
          batch.map(({ session }) => session),
        )
        for (const each of batch) {
          each.left--
          if (each.left > 0) ready.push(each)
          else pending--
        }
        for (const resolve of wake) resolve()
        wake.clear()
      }
    }
    await Promise.all(this.#clients.map(lane))
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.end()
  }

  async #append(client: Client, sessions: readonly BareSession[]): Promise<void> {
    const heads = sessions.map(({ seq }) => seq)
    const lines = sessions.map(nextLine)
    const ones = sessions.map(() => 1)
    const { rows } = await client.query(
      'select place, first from tapetree.append_lines($1, $2, $3, $4, $5, $6, $7, $8)',
      [
        sessions.map(() => 'local'),
        sessions.map(({ key }) => key),
        ones,
        heads,
        ones,
        sessions.map((_, index) => index + 1),
        ones,
        lines.map((line) => line.text).join('\n'),
      ],
    )
    if (rows.length !== sessions.length) throw new Error(`${sessions.length - rows.length} appends were rejected`)
  }
}

function nextLine(session: BareSession): SealedLine {
  const id = newId()
  const message = { role: 'user', content: [{ type: 'text', text: { content } }] }
  const line = sealLine({ type: 'message', id, parent_id: session.parent, timestamp: now(), message }, session.seq + 1)
  session.seq++
  session.parent = id
  return line
}

function now(): string {
  return new Date().toISOString()
}
