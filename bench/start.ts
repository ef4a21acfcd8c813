import type { FakeContent } from '@tapetree/agent/testing'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bundle } from '../packages/cli/src/testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../packages/cli/src/testing/fake-home.ts'
import { buildCli } from '../scripts/build-cli.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { median } from '../scripts/figure/percentile.ts'
import { ChatScreen } from './start/chat-screen.ts'

export const name = 'start'
export const claim = 'The command starts quickly and uses little memory.'
export const sizes = { ci: { starts: 15, turns: 1000 }, full: { starts: 41, turns: 10_000 } }

const most = { version: 1.5, paint: 4, idleMegabytes: 120, grownMegabytes: 16 }

/** What the command costs before it does anything, and what it holds after doing much. */
export async function run({ size, say }: FigureContext): Promise<FigureResult> {
  await buildCli()
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  const times = await startTimes(home, sizes[size].starts)
  say(
    `node -e 0: ${times.bare.toFixed(0)} ms, --version: ${times.version.toFixed(0)} ms, first paint: ${times.paint.toFixed(0)} ms`,
  )
  const idle = await idleMegabytes(home)
  say(`idle: ${idle.toFixed(0)} MB`)
  const { turns } = sizes[size]
  const heap = await heapOf(home, turns)
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
  say(`heap: ${megabytes(heap.tenth)} MB at turn ${turns / 10}, ${megabytes(heap.end)} MB at turn ${turns}`)
  const figures = {
    version_ratio: round(times.version / times.bare),
    paint_ratio: round(times.paint / times.bare),
    idle_mb: round(idle),
    heap_grown_mb: round((heap.end - heap.tenth) / 1e6),
    turns,
  }
  const ok =
    figures.version_ratio <= most.version &&
    figures.paint_ratio <= most.paint &&
    figures.idle_mb <= most.idleMegabytes &&
    figures.heap_grown_mb <= most.grownMegabytes
  return { ok, figures }
}

interface StartTimes {
  bare: number
  version: number
  paint: number
}

/** In turn, so that a busy moment of the machine hits all of them. Somebody has used it once before. */
async function startTimes(home: FakeHome, rounds: number): Promise<StartTimes> {
  const times: Record<keyof StartTimes, number[]> = { bare: [], version: [], paint: [] }
  await new ChatScreen(home).leave()
  for (let index = 0; index < rounds; index++) {
    times.bare.push(await timeOf(['-e', '0']))
    times.version.push(await timeOf([bundle, '--version']))
    using screen = new ChatScreen(home)
    times.paint.push(await screen.painted)
  }
  return { bare: median(times.bare), version: median(times.version), paint: median(times.paint) }
}

const execute = promisify(execFile)

async function timeOf(args: readonly string[]): Promise<number> {
  const start = performance.now()
  await execute(process.execPath, args)
  return performance.now() - start
}

/** The middle of three: one may be caught while it reads. They rest beside each other. */
async function idleMegabytes(home: FakeHome): Promise<number> {
  using screens = new DisposableStack()
  const resting = Array.from({ length: 3 }, () => screens.use(new ChatScreen(home)).idleMegabytes())
  return median(await Promise.all(resting))
}

async function heapOf({ provider, cwd, env }: FakeHome, turns: number): Promise<{ tenth: number; end: number }> {
  provider.script(({ number, body, bytes }) => {
    // Thousands of requests are asked, and none is looked at again.
    const before = provider.requests[number - 2]
    if (before) Object.assign(before, { body: {}, bytes: new Uint8Array() })
    // As many tokens as a provider would count, or more: a long conversation is summarized again and again.
    return { type: 'answer', content: answerTo(body), usage: { input: Math.ceil(bytes.length / 2), output: 20 } }
  })
  const program = join(import.meta.dirname, 'start/long-chat.ts')
  const flags = [...process.execArgv, '--expose-gc', program, cwd, String(turns)]
  const { stdout } = await execute(process.execPath, flags, { cwd, env: { ...process.env, ...env } })
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { tenth: number; end: number }
}

/** A question is answered with a tool call and then with words; whoever wants a summary gets words too. */
function answerTo({ messages }: Record<string, unknown>): FakeContent[] {
  const last = JSON.stringify((messages as unknown[]).at(-1))
  return last.includes('what is in this folder?') && !last.includes('<conversation>')
    ? [{ type: 'tool_call', id: `call-${randomUUID()}`, name: 'ls', chunks: ['{"path":"."}'] }]
    : [{ type: 'text', chunks: ['There is **nothing** in it, ', 'as I have said before.'] }]
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
