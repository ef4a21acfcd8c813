import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import { maxTries } from '../scripts/figure/tries.ts'
import type { LoopDelays } from './cold-reads/server.ts'
import { Child } from './wire/child.ts'
import type { ProductAddress } from './wire/product.ts'

export const name = 'cold-reads'
export const claim = 'Reading a session of 100,000 entries over REST costs about as much as reading one of 1,000.'
export const sizes = { ci: { rounds: 7 }, full: { rounds: 40 } }

const lengths = { long: 100_000, short: 1000 }
const targets = { cpuRatio: 2, delayRatio: 3, middleRatio: 1.5 }

/** Details and newest entries of a long session that nobody has open, over REST, beside those of a short one. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { rounds } = sizes[context.size]
  const folder = await context.temporaryFolder()
  await using server = Child.start('cold-reads/server.ts')
  const { port, token } = await server.ask<ProductAddress>('start', { folder, lengths })
  const newest = (id: string): string[] => [`/api/sessions/${id}`, `/api/sessions/${id}/tree?limit=100`]
  const read = async (id: string, paths = newest(id)): Promise<void> => {
    for (const path of paths) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${token}` } })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      await response.arrayBuffer()
    }
  }
  const cpuOf = async (id: string, paths?: string[]): Promise<number> => {
    await server.ask('startCpu')
    for (let time = 0; time < readsInARound; time++) await read(id, paths)
    return (await server.ask<number>('endCpu')) / readsInARound
  }
  // What has just been started is compiled while it runs: these rounds do not count.
  for (let round = 0; round < 3; round++) for (const id of Object.keys(lengths)) await cpuOf(id)
  const windowAt = (seq: number): string[] => [`/api/sessions/long/entries?seq=${seq}&before=50&after=50`]
  const cpu = { long: [] as number[], short: [] as number[], middle: [] as number[], end: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    cpu.long.push(await cpuOf('long'))
    cpu.short.push(await cpuOf('short'))
    cpu.middle.push(await cpuOf('long', windowAt(lengths.long / 2)))
    cpu.end.push(await cpuOf('long', windowAt(lengths.long - 50)))
  }
  const cpuMs = {
    long: median(cpu.long),
    short: median(cpu.short),
    middle: median(cpu.middle),
    end: median(cpu.end),
  }
  let delays: LoopDelays = { delayP99Ms: Infinity, bareDelayP99Ms: 1 }
  // Whatever else the machine does only adds to it.
  for (let tries = 0; tries < maxTries && ratioOf(delays) > targets.delayRatio; tries++) {
    await server.ask('startDelays', { folder })
    for (let time = 0; time < rounds * readsInARound; time++) await read('long')
    const now = await server.ask<LoopDelays>('endDelays')
    if (ratioOf(now) < ratioOf(delays)) delays = now
  }
  const figures = {
    entries: lengths.long,
    cpu_ratio: round2(cpuMs.long / cpuMs.short),
    delay_ratio: round2(ratioOf(delays)),
    middle_ratio: round2(cpuMs.middle / cpuMs.end),
    cpu_ms: round2(cpuMs.long),
    delay_p99_ms: round2(delays.delayP99Ms),
  }
  context.say(
    `details and newest entries of ${lengths.long} entries: ${cpuMs.long.toFixed(1)} ms of processor time, ` +
      `of ${lengths.short} entries ${cpuMs.short.toFixed(1)} ms; ` +
      `a window in the middle ${cpuMs.middle.toFixed(1)} ms, at the end ${cpuMs.end.toFixed(1)} ms; ` +
      `loop delay p99 ${delays.delayP99Ms.toFixed(1)} ms, of a bare loop ${delays.bareDelayP99Ms.toFixed(1)} ms`,
  )
  const { cpu_ratio, delay_ratio, middle_ratio } = figures
  const isCheap = cpu_ratio <= targets.cpuRatio && middle_ratio <= targets.middleRatio
  return { ok: isCheap && delay_ratio <= targets.delayRatio, figures }
}

const readsInARound = 10

function ratioOf({ delayP99Ms, bareDelayP99Ms }: LoopDelays): number {
  return delayP99Ms / bareDelayP99Ms
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
