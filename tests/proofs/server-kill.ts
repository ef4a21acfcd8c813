import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { killOnce } from './server-kill/kill-trial.ts'

export const name = 'server-kill'
export const claim = 'A server that is killed during a run loses nothing that it acknowledged.'
export const sizes = { ci: { kills: 8 }, full: { kills: 1000 } }

/** How much longer a server may take that finds a session in mid-turn and twenty clients at the door. */
const maxReadyRatio = 1.5

/** A server with twenty clients is killed with `kill -9` in mid-turn; another one takes its place. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size, random, seed } = context
  const { kills } = sizes[size]
  const folder = await context.temporaryFolder()
  const compileCache = await context.temporaryFolder()
  const problems: string[] = []
  const bareMs: number[] = []
  const readyMs: number[] = []
  const figures = { kills: 0, commands: 0, acknowledged: 0, slowestToConvergeMs: 0 }
  for (let kill = 1; kill <= kills && problems.length < 5; kill++) {
    const own = Math.floor(random() * 2 ** 32)
    const result = await killOnce({ seed: own, folder: join(folder, String(kill)), compileCache })
    problems.push(...result.problems.map((problem) => `seed ${seed}, kill ${kill}: ${problem}`))
    // The first process fills the compile cache.
    if (kill > 1) bareMs.push(result.bareMs)
    readyMs.push(result.readyMs)
    figures.kills++
    figures.commands += result.commands
    figures.acknowledged += result.acknowledged
    figures.slowestToConvergeMs = Math.max(figures.slowestToConvergeMs, Math.round(result.convergedMs))
  }
  const bare = medianOf(bareMs)
  const ready = medianOf(readyMs)
  const ratio = Number((ready / bare).toFixed(2))
  say(`ready again after ${Math.round(ready)} ms, ${ratio} times of a server with nothing to recover (medians)`)
  if (ratio > maxReadyRatio)
    problems.push(`recovering takes ${ratio} times of a bare start, more than ${maxReadyRatio}`)
  for (const problem of problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: {
      ...figures,
      bareMs: Math.round(bare),
      readyMs: Math.round(ready),
      readyRatio: ratio,
      problems: problems.length,
    },
  }
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Infinity
}
