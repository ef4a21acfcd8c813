import { readFileSync } from 'node:fs'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { compare } from '../scripts/figure/compare.ts'
import { Child } from './wire/child.ts'
import type { CrowdNow, JoinCrowd } from './clients/crowd.ts'
import type { Memory } from './wire/memory.ts'
import type { ProductAddress } from './wire/product.ts'

export const name = 'clients'
export const claim = 'Ten thousand clients cost little more than their sockets.'

const wanted = 10_000
/** As much of the past as a server keeps at hand. */
const lines = 2000

/** What it costs to have ten thousand clients, and to tell all of them a line. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const clients = Math.min(wanted, openFilesLimit() - 500)
  if (clients < wanted) context.say(`only ${clients} clients: a process may have no more files open here (ulimit -n)`)
  await using bare = await BareCrowd.gather(clients, context)
  const one = await measure({ clients, sessions: 1, bare, context })
  const hundred = await measure({ clients, sessions: 100, bare, context })
  const figures = {
    clients,
    one_session_kb_a_client: round(one.rssKb),
    one_session_line_ratio: round(one.ratio),
    hundred_sessions_kb_a_client: round(hundred.rssKb),
    hundred_sessions_line_ratio: round(hundred.ratio),
    dropped: one.dropped + hundred.dropped,
  }
  const ok = [one, hundred].every(({ rssKb, ratio, dropped }) => rssKb <= 20 && ratio <= 2 && dropped === 0)
  return { ok: ok && clients === wanted, figures }
}

interface Measured {
  rssKb: number
  /** Until the last client has a line, beside bare `ws`. */
  ratio: number
  dropped: number
}

async function measure(options: {
  clients: number
  sessions: number
  bare: BareCrowd
  context: FigureContext
}): Promise<Measured> {
  const { clients, sessions, bare, context } = options
  const folder = await context.temporaryFolder()
  await using server = Child.start('clients/product-server.ts', ['--expose-gc'])
  const address = await server.ask<ProductAddress>('start', { folder, sessions, lines })
  const { crowd, rssKb, say } = await gather(server, address, clients)
  await using _ = crowd
  context.say(`${clients} clients on ${sessions} sessions: ${say}`)
  const text = await server.ask<string>('newestLine')
  const { ratio } = await compare({
    label: `the last of them has a line of ${text.length} bytes`,
    rounds: 30,
    say: context.say,
    bare: () => bare.tell(text),
    ours: () => tell(crowd, () => server.ask<number>('append')),
  })
  const { open } = await crowd.ask<CrowdNow>('now')
  return { rssKb, ratio, dropped: clients - open }
}

/** Bare `ws`, with as many clients. */
class BareCrowd implements AsyncDisposable {
  readonly #server = Child.start('clients/bare-server.ts', ['--expose-gc'])
  #crowd: Child | undefined

  static async gather(clients: number, context: FigureContext): Promise<BareCrowd> {
    const bare = new BareCrowd()
    const { port } = await bare.#server.ask<{ port: number }>('start')
    const { crowd, say } = await gather(bare.#server, { port, sessionIds: [] }, clients)
    bare.#crowd = crowd
    context.say(`${clients} clients on bare ws: ${say}`)
    return bare
  }

  tell(text: string): Promise<number> {
    return tell(this.#crowd as Child, () => this.#server.ask<number>('send', { text }))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#crowd?.[Symbol.asyncDispose]()
    await this.#server[Symbol.asyncDispose]()
  }
}

/** Brings the clients together, and says by how much the server grew for each. */
async function gather(
  server: Child,
  address: Omit<JoinCrowd, 'count'>,
  clients: number,
): Promise<{ crowd: Child; rssKb: number; say: string }> {
  await warmUp(address)
  const before = await server.ask<Memory>('memory')
  const start = performance.now()
  const crowd = Child.start('clients/crowd.ts')
  await crowd.ask('join', { ...address, count: clients })
  const seconds = (performance.now() - start) / 1000
  const after = await server.ask<Memory>('memory')
  const kb = (key: keyof Memory): number => (after[key] - before[key]) / 1000 / clients
  const say = `${kb('rss').toFixed(1)} KB each, ${kb('held').toFixed(1)} KB of them in use; they came within ${seconds.toFixed(1)} s`
  return { crowd, rssKb: kb('rss'), say }
}

/** A server that has seen nobody yet grows by more than what its clients cost. */
async function warmUp(address: Omit<JoinCrowd, 'count'>): Promise<void> {
  await using crowd = Child.start('clients/crowd.ts')
  await crowd.ask('join', { ...address, count: 200 })
}

/** Of a process; Node raises what is set to what is allowed. */
function openFilesLimit(): number {
  const limits = process.platform === 'linux' ? readFileSync('/proc/self/limits', 'utf8') : ''
  return Number(/^Max open files\s+\S+\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
}

/** How long it takes, in milliseconds, until the last one has it. */
async function tell(crowd: Child, send: () => Promise<number>): Promise<number> {
  await crowd.ask('arm')
  const startMs = await send()
  return (await crowd.ask<number>('last')) - startMs
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
