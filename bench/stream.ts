import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { measureDeltaCost } from './stream/delta-cost.ts'
import type { LongSession } from './stream/long-session.ts'

export const name = 'stream'
export const claim = 'Streaming through turn, draft and observers adds little to reading the bare stream.'
export const sizes = { ci: { turns: 1000 }, full: { turns: 10_000 } }

/** What a run adds to the stream it reads, and what a long session leaves behind in memory. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { ofProvider, ofGenerator } = await measureDeltaCost(context)
  const heapGrowth = await measureHeapGrowth(context)
  const figures = {
    delta_ratio: round(ofProvider.ratio),
    delta_cpu_ratio: round(ofProvider.cpuRatio),
    generator_delta_ratio: round(ofGenerator.ratio),
    heap_growth_mb: round(heapGrowth),
  }
  const ok = ofProvider.ratio <= 1.25 && ofProvider.cpuRatio <= 1.25 && heapGrowth <= 16
  return { ok, figures }
}

const turnsBetweenCompactions = 100

/** In MB, from an early turn to one ten times as late. */
async function measureHeapGrowth(context: FigureContext): Promise<number> {
  const { turns: late } = sizes[context.size]
  const early = late / 10
  const told = await runLongSession(await context.temporaryFolder(), [early, late])
  const [first, last] = told.heaps.map(({ heapBytes }) => heapBytes / 1e6) as [number, number]
  context.say(
    `a session of ${told.turns} turns in ${told.runs} runs, ${told.toolCalls} tool calls, ${told.compactions} compactions: ` +
      `heap ${first.toFixed(1)} MB at turn ${early}, ${last.toFixed(1)} MB at turn ${late}`,
  )
  if (told.toolCalls !== 2 * late) throw new Error(`There were ${told.toolCalls} tool calls, and not ${2 * late}`)
  if (told.compactions < late / turnsBetweenCompactions - 1) throw new Error(`Only ${told.compactions} compactions`)
  return last - first
}

async function runLongSession(folder: string, turns: number[]): Promise<LongSession> {
  const program = join(import.meta.dirname, 'stream/long-session.ts')
  const flags = [...process.execArgv, '--expose-gc']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, program, folder, ...turns.map(String)])
  return JSON.parse(stdout) as LongSession
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
