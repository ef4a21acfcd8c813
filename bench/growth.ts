import { text, type SessionStore } from '@tapetree/session'
import { sealLine } from '@tapetree/session/format'
import { migratePostgres, openPostgresStore } from '@tapetree/session/stores/postgres'
import { missingPostgres, PostgresServer } from '../packages/session/src/testing/postgres-server.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'

export const name = 'growth'
export const claim =
  'In a PostgreSQL database, append, open and list take as long with many sessions as with a thousand, and a search with as many hits at most three times as long.'
export const sizes = { ci: { sessions: 10_000, rounds: 15 }, full: { sessions: 100_000, rounds: 60 } }

const smallest = 1000
/** So many are written through the store; the others are copies of their rows. */
const written = 200
/** Sessions with the word that is searched for. They are not multiplied, so that there are always as many hits. */
const withNeedle = 20
/** Longer than all other words, of the same syllables. */
const needle = 'golfenhumka'

/** A small database and a copy of it that has grown, measured in turn. */
export async function run(context: FigureContext): Promise<FigureResult> {
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  const { sessions, rounds } = sizes[context.size]
  const server = await PostgresServer.start()
  try {
    await server.admin('create database small')
    await migratePostgres(server.urlFor('admin', 'small'))
    await server.admin('create role app login in role tapetree_app')
    const ids = await writeSessions(server, context)
    await multiply(server, { database: 'small', ids, from: written, to: smallest, random: context.random })
    await server.admin('create database large template small')
    await multiply(server, { database: 'large', ids, from: smallest, to: sessions, random: context.random })
    const times = { small: newTimes(), large: newTimes() }
    await using small = openPostgresStore({ url: server.urlFor('app', 'small'), leaseMs: 60_000 })
    await using large = openPostgresStore({ url: server.urlFor('app', 'large'), leaseMs: 60_000 })
    for (let round = -1; round < rounds; round++) {
      const order = round % 2 === 0 ? (['small', 'large'] as const) : (['large', 'small'] as const)
      for (const which of order) {
        // The first round warms up.
        const kept = round < 0 ? newTimes() : times[which]
        await measure(which === 'small' ? small : large, { ids, times: kept, random: context.random })
      }
    }
    const ratio = (what: keyof Times): number => {
      const [before, after] = [median(times.small[what]), median(times.large[what])]
      context.say(`${what}: ${before.toFixed(2)} ms with ${smallest} sessions, ${after.toFixed(2)} ms with ${sessions}`)
      return Math.round((after / before) * 100) / 100
    }
    const figures = {
      sessions,
      append_ratio: ratio('append'),
      open_ratio: ratio('open'),
      list_ratio: ratio('list'),
      search_ratio: ratio('search'),
    }
    const slowest = Math.max(figures.append_ratio, figures.open_ratio, figures.list_ratio)
    return { ok: slowest <= 1.3 && figures.search_ratio <= 3, figures }
  } finally {
    await server.remove()
  }
}

interface Times {
  append: number[]
  open: number[]
  list: number[]
  search: number[]
}

function newTimes(): Times {
  return { append: [], open: [], list: [], search: [] }
}

async function measure(
  store: SessionStore,
  { ids, times, random }: { ids: readonly string[]; times: Times; random: () => number },
): Promise<void> {
  for (let count = 0; count < 5; count++) {
    const id = ids[Math.floor(random() * ids.length)] as string
    const session = await timed(times.open, () => store.open(id))
    for (let index = 0; index < 4; index++) {
      await timed(times.append, () => session.appendMessage('user', [text('one more line')]))
    }
    await session.close()
  }
  // Rows and texts of the sessions that have just grown are added first, which takes as long in both.
  await store.list({ limit: 1 })
  await store.search({ text: 'nothing-of-this-kind' })
  for (let count = 0; count < 3; count++) {
    const page = await timed(times.list, () => store.list())
    if (page.sessions.length !== 100) throw new Error(`The list has ${page.sessions.length} sessions`)
    const hits = await timed(times.search, () => store.search({ text: needle, limit: 100 }))
    if (hits.length !== withNeedle) throw new Error(`The search found ${hits.length} entries`)
  }
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const start = performance.now()
  const result = await work()
  times.push(performance.now() - start)
  return result
}

/** Through the store, which also makes the rows for list and search. */
async function writeSessions(server: PostgresServer, { random, say }: FigureContext): Promise<string[]> {
  const start = performance.now()
  await using store = openPostgresStore({ url: server.urlFor('app', 'small'), leaseMs: 60_000, connections: 24 })
  const ids = Array.from({ length: written }, (_, index) => `s${index}`)
  const write = async (id: string, index: number): Promise<void> => {
    const session = await store.create({ id, cwd: `/home/someone/project${index % 40}` })
    const said = Array.from({ length: 5 }, () => sentence(random))
    if (index < withNeedle) said[3] += ` ${needle} `
    await Promise.all(said.map((words) => session.appendMessage('user', [text(words)])))
    await session.close()
  }
  for (let from = 0; from < written; from += 50) {
    await Promise.all(ids.slice(from, from + 50).map((id, index) => write(id, from + index)))
  }
  await store.list()
  await store.search({ text: needle })
  say(`${written} sessions written in ${((performance.now() - start) / 1000).toFixed(1)} s`)
  return ids
}

const syllables = 'ka lo mi ter san vel po re du shi an ing st or qu ex bra fen gol hum'.split(' ')

function sentence(random: () => number): string {
  const word = (): string => Array.from({ length: random() < 0.4 ? 3 : 2 }, () => syllable(random)).join('')
  return Array.from({ length: 25 }, word).join(' ')
}

function syllable(random: () => number): string {
  return syllables[Math.floor(random() * syllables.length)] as string
}

interface Growth {
  database: string
  ids: readonly string[]
  from: number
  to: number
  random: () => number
}

/** Adds copies of the rows that the store has made, each with a session id and a header of its own. */
async function multiply(server: PostgresServer, { database, ids, from, to, random }: Growth): Promise<void> {
  const originals = ids.slice(withNeedle)
  const client = await server.connect('admin', database)
  try {
    await client.query('set search_path = tapetree, public')
    for (let made = from; made < to; made += originals.length) {
      const batch = originals.slice(0, to - made).map((original) => {
        const id = `${original}-${made}`
        const timestamp = '2026-11-01T12:00:00.000Z'
        const header = sealLine({ type: 'session', id, version: 1, timestamp, cwd: '/home/someone/project' }, 1)
        return { original, id, header: header.text }
      })
      await client.query(copies, [
        batch.map(({ original }) => original),
        batch.map(({ id }) => id),
        batch.map(({ header }) => header),
        batch.map(() => Array.from({ length: 5 }, () => syllable(random)).join('')),
      ])
    }
    await client.query('vacuum analyze')
  } finally {
    await client.end()
  }
}

/** Each copy has a word of its own, of the same syllables. */
const copies = `
  with given as materialized (
    select s.key as old, g.id, g.header, g.original, g.word, s.tenant, s.term, s.head, s.lines
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g (original, id, header, word)
    join session s on s.tenant = 'local' and s.id = g.original
  ), made as (
    insert into session (tenant, id, creation, term, head, lines, is_row_stale, is_text_stale)
    select tenant, id, gen_random_uuid(), term, head, lines, false, false from given
    returning key, id
  ), pair as materialized (
    select m.key, g.* from made m join given g on g.id = m.id
  ), entries as (
    insert into entry (key, n, tenant, line)
    select p.key, e.n, e.tenant, case e.n when 1 then p.header else e.line end from pair p join entry e on e.key = p.old
  ), checkpoints as (
    insert into derived (key, piece, tenant, content)
    select p.key, d.piece, d.tenant, d.content from pair p join derived d on d.key = p.old
  ), rows as (
    insert into summary (key, tenant, id, place, row_lines, text_lines, modified, status, cwd, haystack, info)
    select p.key, r.tenant, p.id, r.place, r.row_lines, r.text_lines, r.modified, r.status, r.cwd, r.haystack,
      replace(r.info, format('"id":"%s"', p.original), format('"id":"%s"', p.id))
    from pair p join summary r on r.key = p.old
  ), words as (
    insert into search_term select tenant, word from given on conflict do nothing
  )
  insert into entry_text (key, n, tenant, seq, ms, role, folded, terms)
  select p.key, t.n, t.tenant, t.seq, t.ms, t.role, t.folded || ' ' || p.word, t.terms || array_to_tsvector(array[p.word])
  from pair p join entry_text t on t.key = p.old`
