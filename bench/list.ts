import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import type { Listed } from './list/list-once.ts'
import { writeManySessions } from './session/generate-many.ts'

export const name = 'list'
export const claim = 'Listing ten thousand sessions reads only those that changed.'
export const sizes = { ci: { sessions: 10_000 }, full: { sessions: 100_000 } }

/** A list touches only the logs that changed. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const small = await listMany(sizes.ci.sessions, context)
  const figures = {
    list_over_ms: round(small.overMs),
    list_over_mb: round(small.overMegabytes),
    list_to_stat_ratio: round(small.toBare),
    logs_read_after_one_change: small.readAfterChange,
    without_index_ms: round(small.withoutIndexMs),
  }
  const ok =
    small.overMs <= 300 && small.overMegabytes <= 50 && small.readAfterChange === 1 && small.withoutIndexMs <= 5000
  if (context.size === 'ci') return { ok, figures }
  const large = await listMany(sizes.full.sessions, context)
  const more = {
    list_100k_over_ms: round(large.overMs),
    list_100k_over_mb: round(large.overMegabytes),
    list_100k_ratio: round(large.overMs / small.overMs),
    without_index_100k_ms: round(large.withoutIndexMs),
  }
  return {
    ok: ok && large.overMs <= 12 * 300 && large.overMegabytes <= 12 * 50 && large.readAfterChange === 1,
    figures: { ...figures, ...more },
  }
}

interface Measured {
  /** Beyond a process that opens the store and does not list. */
  overMs: number
  overMegabytes: number
  /** Compared with looking at every log and nothing else. */
  toBare: number
  readAfterChange: number
  withoutIndexMs: number
}

async function listMany(sessions: number, context: FigureContext): Promise<Measured> {
  const folder = await context.temporaryFolder()
  const { random } = context
  const { ids, logBytes } = writeManySessions(folder, { sessions, entries: 20, wordsPerEntry: 40, random })
  context.say(`${sessions} sessions of 20 entries, ${Math.round(logBytes / 1e6)} MB`)
  const withoutIndexMs = await withoutIndex(folder, sessions, context)
  const samples: Record<Listed['how'], Listed[]> = { list: [], bare: [], baseline: [] }
  const rounds = 7
  for (let round = 0; round < rounds; round++) {
    for (const how of ['baseline', 'bare', 'list'] as const) samples[how].push(await inFreshProcess(folder, how))
  }
  if (samples.list.some(({ reads }) => reads > 0)) throw new Error('A list read logs that had not changed')
  const middle = (how: Listed['how'], value: (listed: Listed) => number): number => median(samples[how].map(value))
  const ms = { list: middle('list', wallMs), bare: middle('bare', wallMs), baseline: middle('baseline', wallMs) }
  const bytes = { list: middle('list', rssBytes), baseline: middle('baseline', rssBytes) }
  const overMs = ms.list - ms.baseline
  const bareMs = ms.bare - ms.baseline
  const overMegabytes = (bytes.list - bytes.baseline) / 1e6
  context.say(
    `list of ${sessions}, index present: ${overMs.toFixed(0)} ms and ${overMegabytes.toFixed(1)} MB over a process that only ` +
      `opens the store (${ms.baseline.toFixed(0)} ms); a bare stat of every log ${bareMs.toFixed(0)} ms ` +
      `(median of ${rounds} processes)`,
  )
  const readAfterChange = await afterOneChange(folder, ids, context)
  return { overMs, overMegabytes, toBare: overMs / bareMs, readAfterChange, withoutIndexMs }
}

async function withoutIndex(folder: string, sessions: number, context: FigureContext): Promise<number> {
  const samples: number[] = []
  for (let round = 0; round < 5; round++) {
    rmSync(join(folder, 'index-1.sqlite'), { force: true })
    const listed = await inFreshProcess(folder, 'list')
    if (listed.sessions !== 100 || listed.reads !== sessions) throw new Error(`The list read ${listed.reads} logs`)
    samples.push(listed.ms)
  }
  context.say(`list of ${sessions} without an index: ${median(samples).toFixed(0)} ms (median of ${samples.length})`)
  return median(samples)
}

async function afterOneChange(folder: string, ids: readonly string[], context: FigureContext): Promise<number> {
  const id = ids[Math.floor(ids.length / 3)] as string
  const store = openFileStore({ folder })
  const session = await store.open(id)
  await session.appendMessage('user', [text('One more thing')])
  await session.close()
  await store.close()
  const { first, reads, ms } = await inFreshProcess(folder, 'list')
  if (first !== id) throw new Error(`The session that changed is not the first of the list`)
  context.say(`one session changed: the list has it first, after reading ${reads} log in ${ms.toFixed(0)} ms`)
  return reads
}

async function inFreshProcess(folder: string, how: Listed['how']): Promise<Listed> {
  const program = join(import.meta.dirname, 'list/list-once.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, folder, how])
  return JSON.parse(stdout) as Listed
}

function wallMs({ sinceStartMs }: Listed): number {
  return sinceStartMs
}

function rssBytes(listed: Listed): number {
  return listed.rssBytes
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
