import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import type { Place, Seen } from './fanout/load.ts'
import type { LoopMeasure } from './sessions/measure-loop.ts'
import { Child } from './wire/child.ts'
import type { ProductAddress } from './wire/product.ts'
import { Backends } from './wire/backends.ts'

export const name = 'fanout'
export const claim =
  'A session with a hundred clients on three nodes reaches 0.7 of what bare sockets behind NATS do, and its frames are at most twice as late.'
export const sizes = { ci: { rounds: 5, measuredMs: 1000 }, full: { rounds: 15, measuredMs: 4000 } }

const nodes = ['a', 'b', 'c']
const clients = 100
/** Words a second, and how often they are sent: many small frames, for both alike. */
const rate = 1000
const tickMs = 5
const topic = 'frames'

/**
 * One model talks, and all clients see it. Compared is the processor time of the three nodes for each frame that a client has, and
 * how late the frames are.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  await using backends = await Backends.start()
  await using ours = await Side.product(context, backends)
  await using bare = await Side.bare(backends)
  const sizing = sizes[context.size]
  const samples = { ours: [] as Sample[], bare: [] as Sample[] }
  // The first round warms up.
  for (let round = -1; round < sizing.rounds; round++) {
    for (const which of round % 2 === 0 ? (['ours', 'bare'] as const) : (['bare', 'ours'] as const)) {
      const sample = await (which === 'ours' ? ours : bare).measure(sizing.measuredMs)
      if (round >= 0) samples[which].push(sample)
    }
  }
  const [our, its] = [middleOf(samples.ours), middleOf(samples.bare)]
  const said = ({ cpuUs, delayP99Ms, framesASecond }: Sample): string =>
    `${cpuUs.toFixed(2)} µs for each frame of a client, p99 ${delayP99Ms.toFixed(1)} ms, ${framesASecond.toFixed(0)} frames a second`
  context.say(`ours: ${said(our)}`)
  context.say(`bare: ${said(its)}`)
  const figures = {
    clients,
    nodes: nodes.length,
    cpu_us_a_frame: round2(our.cpuUs),
    rate_ratio: round2(its.cpuUs / our.cpuUs),
    delay_p99_ms: round2(our.delayP99Ms),
    delay_p99_ratio: round2(our.delayP99Ms / its.delayP99Ms),
  }
  return { ok: figures.rate_ratio >= 0.7 && figures.delay_p99_ratio <= 2, figures }
}

interface Sample {
  /** Of all nodes together, for each frame that a client got. */
  cpuUs: number
  delayP99Ms: number
  framesASecond: number
}

/** Three servers, and the process that talks and watches. */
class Side implements AsyncDisposable {
  readonly #nodes: Child[]
  readonly #load: Child

  static async product(context: FigureContext, { store, bus }: Backends): Promise<Side> {
    const load = Child.start('fanout/load.ts')
    const { port: scriptPort } = await load.ask<{ port: number }>('listen')
    const children: Child[] = []
    const places: Place[] = []
    let id = ''
    for (const node of nodes) {
      const child = Child.start('fanout/node.ts')
      children.push(child)
      const { port, token, sessionIds } = await child.ask<ProductAddress>('start', {
        folder: await context.temporaryFolder(),
        // The first node owns the session.
        sessions: node === 'a' ? 1 : 0,
        cluster: { store, bus, node },
        tickMs,
        scriptPort,
      })
      id = sessionIds[0] ?? id
      places.push({ port, session: { id, token } })
    }
    await load.ask('join', { places, count: clients })
    return new Side(children, load)
  }

  static async bare({ bus }: Backends): Promise<Side> {
    const load = Child.start('fanout/load.ts')
    const { port: scriptPort } = await load.ask<{ port: number }>('listen')
    const children = nodes.map(() => Child.start('fanout/bare-node.ts'))
    const options = { bus, topic, tickMs, scriptPort }
    const places = await Promise.all(children.map((child) => child.ask<Place>('start', options)))
    await load.ask('join', { places, count: clients })
    return new Side(children, load)
  }

  private constructor(children: Child[], load: Child) {
    this.#nodes = children
    this.#load = load
  }

  async measure(ms: number): Promise<Sample> {
    await this.#load.ask('talk', { rate })
    await this.#load.ask<Seen>('measure', { ms: ms / 2 })
    const seeing = this.#load.ask<Seen>('measure', { ms })
    const loops = await Promise.all(this.#nodes.map((node) => node.ask<LoopMeasure>('measure', { ms })))
    const { frames, delayP99Ms } = await seeing
    await this.#load.ask('end')
    const cpuMs = loops.reduce((sum, loop) => sum + loop.cpuMs, 0)
    return { cpuUs: (cpuMs * 1000) / frames, delayP99Ms, framesASecond: (frames / ms) * 1000 }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#load, ...this.#nodes]) await child[Symbol.asyncDispose]()
  }
}

function middleOf(samples: readonly Sample[]): Sample {
  const of = (key: keyof Sample): number => median(samples.map((sample) => sample[key]))
  return { cpuUs: of('cpuUs'), delayP99Ms: of('delayP99Ms'), framesASecond: of('framesASecond') }
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
