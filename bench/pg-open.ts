import { execFile } from 'node:child_process'
import { createReadStream, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { migratePostgres, openPostgresStore } from '@tapetree/session/stores/postgres'
import { missingPostgres, PostgresServer } from '../packages/session/src/testing/postgres-server.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import { writeCompactedSession } from './session/generate.ts'

export const name = 'pg-open'
export const claim =
  'In a PostgreSQL database, a session of 200,000 entries opens for its next turn about as fast as one of a thousand.'
export const sizes = { ci: { entries: 200_000, rounds: 5 }, full: { entries: 200_000, rounds: 41 } }

/** Opening costs what the context costs, however long the history is. */
export async function run(context: FigureContext): Promise<FigureResult> {
  if (missingPostgres !== undefined) throw new Error(missingPostgres)
  const { entries, rounds } = sizes[context.size]
  const server = await PostgresServer.start()
  try {
    await server.admin('create database sessions')
    await migratePostgres(server.urlFor('admin', 'sessions'))
    await server.admin('create role app login in role tapetree_app')
    const url = server.urlFor('app', 'sessions')
    await load(server, { id: 'long', entries }, context)
    await load(server, { id: 'short', entries: 1000 }, context)
    await server.admin('vacuum analyze', 'sessions')
    const opened = { long: [] as Opened[], short: [] as Opened[] }
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? (['long', 'short'] as const) : (['short', 'long'] as const)
      for (const id of order) opened[id].push(await openInFreshProcess(url, id))
    }
    const middle = (id: 'long' | 'short', value: (each: Opened) => number): number => median(opened[id].map(value))
    const ms = { long: middle('long', (each) => each.ms), short: middle('short', (each) => each.ms) }
    const held = { long: middle('long', (each) => each.heldBytes), short: middle('short', (each) => each.heldBytes) }
    context.say(`next turn: ${ms.long.toFixed(1)} ms after ${entries} entries, ${ms.short.toFixed(1)} ms after 1,000`)
    const figures = { entries, time_ratio: round2(ms.long / ms.short), memory_ratio: round2(held.long / held.short) }
    return { ok: figures.time_ratio <= 1.5 && figures.memory_ratio <= 1.5, figures }
  } finally {
    await server.remove()
  }
}

interface Opened {
  ms: number
  messages: number
  heldBytes: number
}

/** Stores the lines by the statement that the store sends, many at once. */
async function load(
  server: PostgresServer,
  { id, entries }: { id: string; entries: number },
  { say, temporaryFolder }: FigureContext,
): Promise<void> {
  const folder = await temporaryFolder()
  const { bytes } = writeCompactedSession(folder, { id, entries, after: 200 })
  say(`${id}: ${entries} entries, ${Math.round(bytes / 1e6)} MB`)
  const client = await server.connect('app', 'sessions')
  let key = ''
  let head = 1
  let batch: string[] = []
  const flush = async (): Promise<void> => {
    const places = batch.map(() => 1)
    const offsets = batch.map((_, index) => index + 1)
    const { rows } = await client.query(
      `select place from tapetree.append_lines(array['local'], $1, array[1], $2, $3, $4, $5, $6)`,
      [[key], [head], [batch.length], places, offsets, batch.join('\n')],
    )
    if (rows.length !== 1) throw new Error('The lines were rejected')
    head += batch.length
    batch = []
  }
  for await (const line of createInterface(createReadStream(join(folder, id, 'events.jsonl')))) {
    if (key === '') {
      await client.query(`select tapetree.create_session('local', $1, gen_random_uuid(), $2)`, [id, line])
      const { rows } = await client.query<{ key: string }>(
        `select key from tapetree.claim_session('local', $1, gen_random_uuid(), gen_random_uuid(), false)`,
        [id],
      )
      key = String(rows[0]?.key)
      continue
    }
    if (batch.push(line) === 2000) await flush()
  }
  if (batch.length > 0) await flush()
  await client.end()
  rmSync(folder, { recursive: true, force: true })
  // One open and close writes the checkpoint, as the end of every run does.
  await using store = openPostgresStore({ url: server.urlFor('app', 'sessions') })
  const session = await store.open(id)
  await session.appendSessionInfo(id)
  await session.close()
}

async function openInFreshProcess(url: string, id: string): Promise<Opened> {
  const program = join(import.meta.dirname, 'pg-open/next-turn.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, '--expose-gc', program, url, id])
  const opened = JSON.parse(stdout) as Opened
  if (opened.messages !== 202) throw new Error(`The context has ${opened.messages} messages where 202 were expected`)
  return opened
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
