import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openFileStore } from '@tapetree/session/stores/file'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { forEachParsedLine } from '../scripts/figure/parsed-lines.ts'
import { median } from '../scripts/figure/percentile.ts'
import { writeCompactedSession } from './session/generate.ts'

export const name = 'open'
export const claim = 'A session of a million entries opens for its next turn about as fast as one of a thousand.'
export const sizes = { ci: { entries: 200_000 }, full: { entries: 1_000_000 } }

/** Opening costs what the context costs, however long the history is. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const folder = await context.temporaryFolder()
  const { entries } = sizes[context.size]
  const next = await nextTurn(folder, entries, context)
  const whole = await wholeSession(folder, context)
  const figures = {
    entries,
    time_ratio: round(next.time),
    memory_ratio: round(next.memory),
    cold_ms_long: next.coldLong,
    cold_ms_short: next.coldShort,
    whole_ratio: round(whole),
  }
  return { ok: next.time <= 1.5 && next.memory <= 1.5 && whole <= 1.3, figures }
}

interface Opened {
  ms: number
  messages: number
  heldBytes: number
}

interface NextTurn {
  time: number
  memory: number
  coldLong: number | string
  coldShort: number | string
}

async function nextTurn(folder: string, entries: number, context: FigureContext): Promise<NextTurn> {
  for (const [id, count] of [
    ['long', entries],
    ['short', 1000],
  ] as const) {
    const { bytes } = writeCompactedSession(folder, { id, entries: count, after: 200 })
    context.say(`${id}: ${count} entries, ${Math.round(bytes / 1e6)} MB`)
    // One open and close writes the checkpoint, as the end of every run does.
    const store = openFileStore({ folder })
    const session = await store.open(id)
    await session.appendSessionInfo(id)
    await session.close()
    await store.close()
  }
  const opened: Record<'long' | 'short', Opened[]> = { long: [], short: [] }
  const rounds = 11
  for (let index = 0; index < rounds; index++) {
    for (const id of ['long', 'short'] as const) opened[id].push(await openInFreshProcess(folder, id))
  }
  const ms = { long: median(opened.long.map((each) => each.ms)), short: median(opened.short.map((each) => each.ms)) }
  const bytes = {
    long: median(opened.long.map((each) => each.heldBytes)),
    short: median(opened.short.map((each) => each.heldBytes)),
  }
  context.say(
    `next turn, warm: ${ms.long.toFixed(1)} ms after ${entries} entries, ${ms.short.toFixed(1)} ms after 1,000`,
  )
  context.say(
    `memory held: ${kilobytes(bytes.long)} KB and ${kilobytes(bytes.short)} KB (median of ${rounds} processes)`,
  )
  const coldLong = await openCold(folder, 'long')
  const coldShort = await openCold(folder, 'short')
  context.say(`next turn, cold: ${coldLong} ms and ${coldShort} ms`)
  return { time: ms.long / ms.short, memory: bytes.long / bytes.short, coldLong, coldShort }
}

async function openInFreshProcess(folder: string, id: string): Promise<Opened> {
  const program = join(import.meta.dirname, 'open/next-turn.ts')
  const { stdout } = await execute(process.execPath, [...process.execArgv, '--expose-gc', program, folder, id])
  const opened = JSON.parse(stdout) as Opened
  if (opened.messages !== 202) throw new Error(`The context has ${opened.messages} messages where 202 were expected`)
  return opened
}

const execute = promisify(execFile)

/** Only root may empty the page cache; elsewhere the figure is left out and says so. */
async function openCold(folder: string, id: string): Promise<number | string> {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '1')
  } catch {
    return 'not measured: the page cache cannot be emptied here'
  }
  return round((await openInFreshProcess(folder, id)).ms)
}

async function wholeSession(folder: string, context: FigureContext): Promise<number> {
  const id = 'whole'
  writeCompactedSession(folder, { id, entries: 100_000, after: 200 })
  const path = join(folder, id, 'events.jsonl')
  const { ratio } = await compare({
    label: 'whole session of 100,000 entries',
    rounds: 7,
    say: context.say,
    bare: () => forEachParsedLine(path, () => undefined),
    ours: async () => {
      rmSync(join(folder, id, 'checkpoint.json'), { force: true })
      const store = openFileStore({ folder })
      const session = await store.open(id, { readOnly: true })
      await session.close()
      await store.close()
    },
  })
  return ratio
}

function kilobytes(bytes: number): number {
  return Math.round(bytes / 1024)
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
