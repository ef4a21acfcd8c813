import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import type { Appended } from './nodes/node.ts'
import type { LoadEnd, LoadNow } from './sessions/load.ts'
import type { LoopMeasure } from './sessions/measure-loop.ts'
import { Backends } from './wire/backends.ts'
import { Child } from './wire/child.ts'
import type { ProductAddress } from './wire/product.ts'

export const name = 'nodes'
export const claim = 'A delta and an append take as much processor time on each of three nodes as on one alone.'
export const sizes = { ci: { rounds: 3, measuredMs: 800 }, full: { rounds: 7, measuredMs: 4000 } }

/** For each node, so that the service grows with them. */
const load = { sessions: 40, deltasASecond: 1000, appendsASecond: 400 }
const warmUpMs = 300

/** Services of one, two and three nodes, each with a database of its own, measured in turn. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { rounds, measuredMs } = sizes[context.size]
  await using stack = new AsyncDisposableStack()
  const services: Service[] = []
  for (const count of [1, 2, 3]) services.push(stack.use(await Service.start(context, count)))
  const samples = services.map(() => ({ delta: [] as number[], append: [] as number[] }))
  // The first round warms up.
  for (let round = -1; round < rounds; round++) {
    for (const [index, service] of services.entries()) {
      const delta = await service.streamed(measuredMs)
      const append = await service.appended(measuredMs)
      if (round < 0) continue
      samples[index]?.delta.push(delta)
      samples[index]?.append.push(append)
    }
  }
  const [one, two, three] = samples.map(({ delta, append }, index) => {
    const middle = { delta: median(delta), append: median(append) }
    context.say(
      `${index + 1} ${index === 0 ? 'node' : 'nodes'}: ${(index + 1) * load.deltasASecond} deltas a second for ${middle.delta.toFixed(1)} µs each, ` +
        `${(index + 1) * load.appendsASecond} appends a second for ${middle.append.toFixed(1)} µs each`,
    )
    return middle
  }) as [Costs, Costs, Costs]
  const figures = {
    delta_us: round2(one.delta),
    append_us: round2(one.append),
    two_delta_ratio: round2(two.delta / one.delta),
    two_append_ratio: round2(two.append / one.append),
    three_delta_ratio: round2(three.delta / one.delta),
    three_append_ratio: round2(three.append / one.append),
  }
  const { two_delta_ratio, two_append_ratio, three_delta_ratio, three_append_ratio } = figures
  const most = Math.max(two_delta_ratio, two_append_ratio, three_delta_ratio, three_append_ratio)
  return { ok: most <= 1.2, figures }
}

/** Processor time of the nodes, in microseconds. */
interface Costs {
  delta: number
  append: number
}

class Service implements AsyncDisposable {
  readonly #backends: Backends
  readonly #nodes: Child[] = []
  readonly #load = Child.start('sessions/load.ts')

  static async start(context: FigureContext, count: number): Promise<Service> {
    const service = new Service(await Backends.start())
    const { store, bus } = service.#backends
    const { port: scriptPort } = await service.#load.ask<{ port: number }>('listen')
    for (let index = 0; index < count; index++) {
      const node = Child.start('nodes/node.ts')
      service.#nodes.push(node)
      const address = await node.ask<ProductAddress>('start', {
        folder: await context.temporaryFolder(),
        sessions: load.sessions,
        scriptPort,
        cluster: { store, bus, node: `node-${index}` },
      })
      await service.#load.ask('watchProduct', address)
    }
    return service
  }

  private constructor(backends: Backends) {
    this.#backends = backends
  }

  async streamed(ms: number): Promise<number> {
    await this.#load.ask('begin', { rate: load.deltasASecond * this.#nodes.length })
    await new Promise((resolve) => setTimeout(resolve, warmUpMs))
    const start = await this.#load.ask<LoadNow>('now')
    const loops = await Promise.all(this.#nodes.map((node) => node.ask<LoopMeasure>('measure', { ms })))
    const stop = await this.#load.ask<LoadNow>('now')
    const { said, kept } = await this.#load.ask<LoadEnd>('end')
    if (said !== kept) throw new Error(`Of ${said} characters ${kept} were kept`)
    return cpuUs(loops) / (stop.seen - start.seen)
  }

  async appended(ms: number): Promise<number> {
    const rate = load.appendsASecond
    const done = await Promise.all(this.#nodes.map((node) => node.ask<Appended>('append', { ms, rate })))
    return cpuUs(done) / done.reduce((sum, { appends }) => sum + appends, 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [this.#load, ...this.#nodes]) await child[Symbol.asyncDispose]()
    await this.#backends[Symbol.asyncDispose]()
  }
}

function cpuUs(loops: readonly LoopMeasure[]): number {
  return loops.reduce((sum, { cpuMs }) => sum + cpuMs, 0) * 1000
}

function round2(value: number): number {
  return Math.round(value * 100) / 100
}
