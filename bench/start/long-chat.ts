// The chat of one session for many turns, in a process of its own: `long-chat.ts <cwd> <turns>`, with --expose-gc and the environment of a
// fake home. Prints what is on the heap at a tenth of the turns and at their end.
import type { SessionHandle } from '@tapetree/client'
import { localSource } from '../../packages/cli/src/host/local-source.ts'
import { openStore } from '../../packages/cli/src/host/open-store.ts'
import { SessionHost } from '../../packages/cli/src/host/session-host.ts'
import { placesOf } from '../../packages/cli/src/host/places.ts'
import { runChat } from '../../packages/cli/src/tui/run-chat.ts'
import { SilentTerminal } from './silent-terminal.ts'

/** Each prompt is answered with a tool call and a word: two turns. */
const turnsOfPrompt = 2

const [cwd = '', turns = '1000'] = process.argv.slice(2)
const io = { env: process.env, home: process.env['HOME'] ?? '' }
const store = await openStore(placesOf(io))
const host = await SessionHost.open({ io, store, owner: 'terminal' })
const source = localSource({ host, store, cwd, models: () => Promise.resolve([]) })
const first = await source.create()
const terminal = new SilentTerminal()
void runChat({
  source,
  first,
  terminal,
  look: { theme: 'dark', vim: false, screenReader: false, altScreen: true, color: true },
  cwd,
  ...io,
})
const heaps: number[] = []
const prompts = Number(turns) / turnsOfPrompt
for (let prompt = 1; prompt <= prompts; prompt++) {
  await ask(first.handle, `Question ${prompt}: what is in this folder?`)
  if (prompt === Math.round(prompts / 10) || prompt === prompts) heaps.push(await heapBytes())
}
const [tenth = 0, end = 0] = heaps
process.stdout.write(`${JSON.stringify({ tenth, end, drawn: terminal.written })}\n`, () => process.exit(0))

async function ask(handle: SessionHandle, text: string): Promise<void> {
  const before = handle.transcript.lastRun?.runId
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = handle.subscribe(() => {
    const { run, lastRun } = handle.transcript
    if (run === null && lastRun !== null && lastRun.runId !== before) resolve()
  })
  await handle.prompt(text)
  await promise
  stop()
}

/** What is left when everything has gone that can go; finalisers need a turn of the loop. */
async function heapBytes(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}
