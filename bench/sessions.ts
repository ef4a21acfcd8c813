import { setTimeout } from 'node:timers/promises'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import type { LoadEnd, LoadNow } from './sessions/load.ts'
import type { LoopMeasure } from './sessions/measure-loop.ts'
import { Child } from './wire/child.ts'
import type { ProductAddress } from './wire/product.ts'

export const name = 'sessions'
export const claim = 'Streaming to clients keeps at least half the rate of bare sockets.'
export const sizes = { ci: { sessions: 200, measuredMs: 1200 }, full: { sessions: 1000, measuredMs: 5000 } }

const maxDelayMs = 50
/** Deltas a second that are tried, of all sessions together. */
const rates = Array.from({ length: 18 }, (_, index) => Math.round((10_000 * 1.25 ** index) / 100) * 100)
const wantedRate = 50_000
const attempts = 3
const warmUpMs = 300
const warmUpRounds = 3

/** How many deltas a second a server brings from models to screens, beside the same models straight to `ws`. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { sessions } = sizes[context.size]
  await using ours = await Pair.product(context, sessions)
  await using bare = await Pair.bare(context, sessions)
  const most = await findMostOfBoth(ours, bare)
  // Where neither is at its limit: whoever cannot keep up does more at a time, which costs less.
  const rate = Math.min(most.ours / 2, most.bare / 2, wantedRate)
  const cpu = await compareCpu(ours, bare, rate)
  const figures = {
    sessions,
    deltas_a_second: most.ours,
    bare_deltas_a_second: most.bare,
    rate_ratio: round2(most.ours / most.bare),
    cpu_ratio: round2(cpu.ours / cpu.bare),
    cpu_us_a_delta: round2(cpu.ours),
  }
  context.say(
    `${sessions} sessions: ${most.ours} deltas a second, bare ${most.bare}; ` +
      `at ${rate} a second ${cpu.ours.toFixed(1)} µs of processor time a delta, bare ${cpu.bare.toFixed(1)} µs`,
  )
  return { ok: figures.rate_ratio >= 0.5 && figures.cpu_ratio <= 2, figures }
}

interface Most {
  ours: number
  bare: number
}

/** By halving, the two in turn, so that a busy moment of the machine hits both. */
async function findMostOfBoth(ours: Pair, bare: Pair): Promise<Most> {
  // What has just been started is compiled while it runs: these rounds do not count.
  for (let round = 0; round < warmUpRounds; round++) for (const pair of [ours, bare]) await pair.try(wantedRate)
  const searches = [new Search(ours), new Search(bare)] as const
  while (searches.some((search) => !search.isOver)) for (const search of searches) await search.step()
  const [most, mostOfBare] = searches.map(({ most }) => most) as [number, number]
  return { ours: most, bare: mostOfBare }
}

/** The highest rate that a pair keeps up with. A rate that was too much is tried once more at the end: the machine may have been busy with other things. */
class Search {
  readonly #pair: Pair
  #kept = -1
  #failed = rates.length
  readonly #triedAgain = new Set<number>()

  constructor(pair: Pair) {
    this.#pair = pair
  }

  get isOver(): boolean {
    return this.#failed - this.#kept <= 1 && (this.#failed === rates.length || this.#triedAgain.has(this.#failed))
  }

  get most(): number {
    return rates[this.#kept] ?? 0
  }

  async step(): Promise<void> {
    if (this.isOver) return
    const isAgain = this.#failed - this.#kept <= 1
    const middle = isAgain ? this.#failed : (this.#kept + this.#failed) >> 1
    if (isAgain) this.#triedAgain.add(middle)
    const rate = rates[middle] as number
    // More than once before it counts as too much: other work on the machine delays as well.
    let isKept = false
    for (let attempt = 0; attempt < attempts && !isKept; attempt++) isKept = (await this.#pair.try(rate)).isKept
    if (isKept) this.#kept = middle
    else this.#failed = middle
    if (isKept && isAgain) this.#failed = middle + 1
  }
}

/** Processor time for each delta in microseconds, both at the same rate. */
async function compareCpu(ours: Pair, bare: Pair, rate: number): Promise<Most> {
  const samples = { ours: [] as number[], bare: [] as number[] }
  for (let round = 0; round < 3; round++) {
    samples.ours.push((await ours.try(rate)).cpuUs)
    samples.bare.push((await bare.try(rate)).cpuUs)
  }
  return { ours: median(samples.ours), bare: median(samples.bare) }
}

interface Trial {
  isKept: boolean
  cpuUs: number
}

/** A server, and the process that talks and watches. */
class Pair implements AsyncDisposable {
  readonly #name: string
  readonly #server: Child
  readonly #load = Child.start('sessions/load.ts')
  readonly #context: FigureContext

  static async product(context: FigureContext, sessions: number): Promise<Pair> {
    const pair = new Pair('ours', context, Child.start('sessions/product-server.ts'))
    const { port: scriptPort } = await pair.#load.ask<{ port: number }>('listen')
    const folder = await context.temporaryFolder()
    const address = await pair.#server.ask<ProductAddress>('start', { folder, sessions, scriptPort })
    await pair.#load.ask('watchProduct', address)
    return pair
  }

  static async bare(context: FigureContext, sessions: number): Promise<Pair> {
    const pair = new Pair('bare', context, Child.start('sessions/bare-server.ts'))
    const { port: scriptPort } = await pair.#load.ask<{ port: number }>('listen')
    const { port } = await pair.#server.ask<{ port: number }>('start', { scriptPort, sessions })
    await pair.#load.ask('watchBare', { port, sessions })
    return pair
  }

  private constructor(name: string, context: FigureContext, server: Child) {
    this.#name = name
    this.#context = context
    this.#server = server
  }

  async try(rate: number): Promise<Trial> {
    const ms = sizes[this.#context.size].measuredMs
    await this.#load.ask('begin', { rate })
    await setTimeout(warmUpMs)
    const start = await this.#load.ask<LoadNow>('now')
    const { delayP99Ms, cpuMs } = await this.#server.ask<LoopMeasure>('measure', { ms })
    const stop = await this.#load.ask<LoadNow>('now')
    const { said, kept } = await this.#load.ask<LoadEnd>('end')
    if (said !== kept) throw new Error(`Of ${said} characters ${kept} were kept`)
    const seen = stop.seen - start.seen
    const seenRate = (seen / (stop.atMs - start.atMs)) * 1000
    const isKept = delayP99Ms <= maxDelayMs && seenRate >= 0.95 * rate
    const isSent = stop.sent - start.sent >= 0.95 * rate * ((stop.atMs - start.atMs) / 1000)
    const cpuUs = (cpuMs * 1000) / seen
    this.#context.say(
      `${this.#name} at ${rate}: ${seenRate.toFixed(0)} seen, loop delay p99 ${delayP99Ms.toFixed(1)} ms, ` +
        `${cpuUs.toFixed(1)} µs a delta${isKept ? '' : ', too much'}${isSent ? '' : ' for the load generator'}`,
    )
    return { isKept, cpuUs }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#load[Symbol.asyncDispose]()
    await this.#server[Symbol.asyncDispose]()
  }
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
