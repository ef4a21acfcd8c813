import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median, percentile } from '../scripts/figure/percentile.ts'
import type { Woken } from './slow/readers.ts'
import type { Poured } from './slow/server.ts'
import { Child } from './wire/child.ts'
import type { Memory } from './wire/memory.ts'
import type { ProductAddress } from './wire/product.ts'

export const name = 'slow'
export const claim = 'Stalled readers do not slow down the others.'
export const sizes = { ci: { stalledReaders: 100, megabytes: 100 }, full: { stalledReaders: 1000, megabytes: 1000 } }

const healthy = 10
const highWater = 256 * 1024
const lineBytes = 8 * 1024
const rounds = 9

/** What readers that stall cost those that read, and the process. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { stalledReaders: stalled, megabytes } = sizes[context.size]
  const bytes = megabytes * 1e6
  await using calm = await Stage.open(context, 0)
  await using crowded = await Stage.open(context, stalled)
  const poured = await crowded.pourUntilStalled()
  await calm.pour(poured)
  const p99 = { calm: [] as number[], crowded: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    const each = (bytes - poured) / rounds
    // In turn, so that a busy moment of the machine hits both.
    const order = round % 2 === 0 ? (['calm', 'crowded'] as const) : (['crowded', 'calm'] as const)
    for (const side of order) p99[side].push(percentile(await (side === 'calm' ? calm : crowded).pour(each), 0.99))
  }
  const latencyRatio = median(p99.crowded) / median(p99.calm)
  context.say(
    `p99 of ${healthy} healthy readers: ${median(p99.calm).toFixed(2)} ms, ` +
      `beside ${stalled} stalled ones ${median(p99.crowded).toFixed(2)} ms (median of ${rounds})`,
  )
  const buffered = crowded.maxBuffered - crowded.maxFrame
  const [growth, calmGrowth] = [await crowded.growthMb(), await calm.growthMb()]
  context.say(
    `${(bytes / 1e6).toFixed(0)} MB of events, stalled after ${(poured / 1e6).toFixed(0)} MB: at most ` +
      `${crowded.maxBuffered} bytes buffered for one reader, frames of ${crowded.maxFrame}; ` +
      `the process grew by ${growth.settled.toFixed(0)} MB, at its peak ${growth.peak.toFixed(0)} MB; ` +
      `without stalled readers ${calmGrowth.settled.toFixed(0)} and ${calmGrowth.peak.toFixed(0)} MB`,
  )
  const woken = await crowded.wake()
  const converged = woken.withoutBreak + woken.tail + woken.snapshot
  context.say(
    `woken: ${woken.withoutBreak} went on, ${woken.tail} came back by their cursor, ${woken.snapshot} by a snapshot`,
  )
  const figures = {
    stalled,
    megabytes: bytes / 1e6,
    buffered_over_frame_kib: round2(buffered / 1024),
    grew_mb: round2(growth.peak),
    grew_settled_mb: round2(growth.settled),
    healthy_p99_ratio: round2(latencyRatio),
    not_converged: stalled - converged,
  }
  const ok = buffered <= highWater && growth.peak <= 128 && latencyRatio <= 1.5 && converged === stalled
  return { ok, figures }
}

/** A server, and those who read from it. */
class Stage implements AsyncDisposable {
  readonly #server = Child.start('slow/server.ts', ['--expose-gc'])
  readonly #readers = Child.start('slow/readers.ts')
  maxBuffered = 0
  maxFrame = 0
  #rssBefore = 0
  #maxRss = 0
  #seq = 0

  static async open(context: FigureContext, stalled: number): Promise<Stage> {
    const stage = new Stage()
    const address = await stage.#server.ask<ProductAddress>('start', { folder: await context.temporaryFolder() })
    await stage.#readers.ask('join', { address, healthy, stalled: 0 })
    await stage.#warmUp(address)
    stage.#rssBefore = (await stage.#server.ask<Memory>('memory')).rss
    stage.#maxRss = 0
    await stage.#readers.ask('join', { address, healthy: 0, stalled })
    return stage
  }

  /** A server that has done nothing yet, or told nobody what was, grows by more than what is measured here. */
  async #warmUp(address: ProductAddress): Promise<void> {
    await this.pour(10e6)
    await using visitors = Child.start('slow/readers.ts')
    await visitors.ask('join', { address, healthy: 100, stalled: 0 })
    await this.pour(10e6)
  }

  /** Gives what each line took to each healthy reader, in milliseconds. */
  async pour(bytes: number): Promise<number[]> {
    await this.#pour(bytes)
    return this.#readers.ask<number[]>('latencies', { seq: this.#seq })
  }

  /** The system takes some megabytes for each reader before the server has to keep anything. Says how much was poured. */
  async pourUntilStalled(): Promise<number> {
    const step = 2e6
    for (let poured = step; ; poured += step) {
      const { minStalled } = await this.#pour(step)
      await this.#readers.ask('latencies', { seq: this.#seq })
      if (minStalled > highWater) return poured
      if (poured > 60e6) throw new Error('The readers do not stall')
    }
  }

  async growthMb(): Promise<{ settled: number; peak: number }> {
    const peak = this.#maxRss
    const { rss } = await this.#server.ask<Memory>('memory')
    return { settled: (rss - this.#rssBefore) / 1e6, peak: (peak - this.#rssBefore) / 1e6 }
  }

  wake(): Promise<Woken> {
    return this.#readers.ask<Woken>('wake', { seq: this.#seq })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#readers[Symbol.asyncDispose]()
    await this.#server[Symbol.asyncDispose]()
  }

  async #pour(bytes: number): Promise<Poured> {
    const poured = await this.#server.ask<Poured>('pour', { bytes, lineBytes })
    this.#seq = poured.seq
    this.maxBuffered = Math.max(this.maxBuffered, poured.maxBuffered)
    this.maxFrame = Math.max(this.maxFrame, poured.maxFrame)
    this.#maxRss = Math.max(this.#maxRss, poured.maxRss)
    return poured
  }
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
