import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { catchMutant, caughtLine } from './mutants/catch-mutant.ts'
import { playHistory, type HistoryResult } from './tokens/history.ts'
import { mutants } from './tokens/mutants.ts'
import { ServerProcesses } from './tokens/processes.ts'

export const name = 'tokens'
export const claim = 'No revoked or expired token works, none becomes wider, and no valid one stops working.'

/** Most are played in one process, where the clock is scripted; the others with servers that are killed. */
export const sizes = {
  ci: { historiesInOneProcess: 195, historiesInSeveral: 5 },
  full: { historiesInOneProcess: 19_600, historiesInSeveral: 400 },
}
const maxFailures = 5
const progressEvery = 1000
/** Histories share nothing, and each mostly waits for the disk. */
const sideBySide = 5

/**
 * Several servers share one token file. Random histories create, narrow, pair, revoke, expire, restart and kill; after every step the servers are
 * compared with a model: for requests, sockets and streams. Then faults are added one by one, each of which must show. `TOKENS_CASE` plays
 * one history and tells of it.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, random } = context
  const folder = await context.temporaryFolder()
  const { historiesInOneProcess, historiesInSeveral } = sizes[context.size]
  const figures: Record<string, number> = { histories: 0, inSeveral: 0, mutants: 0 }
  const chosen = process.env['TOKENS_CASE']
  let problems = 0
  const nextSeed = (): number => Math.floor(random() * 2 ** 32)

  if (chosen !== undefined) take(chosen, await play(Number(chosen), say))
  else {
    for (let index = 0; index < historiesInOneProcess && problems < maxFailures; index += sideBySide) {
      const count = Math.min(sideBySide, historiesInOneProcess - index)
      const seeds = Array.from({ length: count }, nextSeed)
      const results = await Promise.all(seeds.map((seed) => play(seed)))
      for (const [at, seed] of seeds.entries()) take(String(seed), results[at] as HistoryResult)
      if (index % progressEvery === 0) say(`${index + count} histories, ${figures['requests']} requests`)
    }
    await playInSeveral(historiesInSeveral)
    await catchMutants()
  }
  return { ok: problems === 0, figures: { ...figures, problems } }

  async function play(seed: number, tell?: (line: string) => void): Promise<HistoryResult> {
    const own = join(folder, String(seed))
    await mkdir(own)
    try {
      return await playHistory({ seed, folder: own, ...(tell && { say: tell }) })
    } finally {
      await rm(own, { recursive: true, force: true, maxRetries: 3 })
    }
  }

  async function playInSeveral(count: number): Promise<void> {
    await using servers = await ServerProcesses.start(join(folder, 'tokens.json'))
    for (let index = 1; index <= count && problems < maxFailures; index++) {
      const seed = nextSeed()
      const result = await servers.play(seed)
      for (const problem of result.problems.slice(0, 5))
        say(`PROBLEM (history ${seed} in several processes) ${problem}`)
      if (result.problems.length > 0) problems++
      add(result)
      figures['inSeveral'] = index
    }
  }

  async function catchMutants(): Promise<void> {
    for (const [fault, mutant] of Object.entries(mutants)) {
      const caught = await catchMutant(mutant, () => play(nextSeed()))
      say(caughtLine(fault, caught))
      if (caught) figures['mutants'] = (figures['mutants'] ?? 0) + 1
      else problems++
    }
  }

  function take(seed: string, result: HistoryResult): void {
    add(result)
    if (result.problems.length === 0) return
    problems++
    for (const problem of result.problems.slice(0, 5)) say(`PROBLEM ${problem}`)
    say(`  again: TOKENS_CASE=${seed} npm run proof tokens`)
  }

  function add(result: HistoryResult): void {
    figures['histories'] = (figures['histories'] ?? 0) + 1
    for (const [figure, value] of Object.entries(result.figures)) figures[figure] = (figures[figure] ?? 0) + value
  }
}
