import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { slowness } from '../../scripts/figure/slowness.ts'
import { killOnce } from './server-kill/kill-trial.ts'
import { KillableServer } from './server-kill/killable-server.ts'

export const name = 'server-kill'
export const claim = 'A server that is killed during a run loses nothing that it acknowledged.'
export const sizes = { ci: { kills: 10 }, full: { kills: 1000 } }

const maxReadyMs = 2000

/** A server with twenty clients is killed with `kill -9` in mid-turn; another one takes its place. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { say, size, random, seed } = context
  const { kills } = sizes[size]
  const folder = await context.temporaryFolder()
  const compileCache = await context.temporaryFolder()
  const problems: string[] = []
  const readyMs: number[] = []
  const readyCpuMs: number[] = []
  let server = new KillableServer(compileCache)
  const figures = { kills: 0, commands: 0, acknowledged: 0, slowestToConvergeMs: 0 }
  for (let kill = 1; kill <= kills && problems.length < 5; kill++) {
    const own = Math.floor(random() * 2 ** 32)
    const result = await killOnce({ seed: own, folder: join(folder, String(kill)), server, compileCache })
    server = result.server
    problems.push(...result.problems.map((problem) => `seed ${seed}, kill ${kill}: ${problem}`))
    readyMs.push(result.readyMs)
    readyCpuMs.push(result.readyCpuMs)
    figures.kills++
    figures.commands += result.commands
    figures.acknowledged += result.acknowledged
    figures.slowestToConvergeMs = Math.max(figures.slowestToConvergeMs, Math.round(result.convergedMs))
  }
  await server.kill()
  const median = Math.round(medianOf(readyMs))
  const medianCpu = Math.round(medianOf(readyCpuMs))
  const slowest = Math.round(Math.max(...readyMs))
  say(`ready again after ${median} ms (median, of which ${medianCpu} ms of work), ${slowest} ms (slowest)`)
  // Where others wait for every core, the time on the wall is theirs.
  const [load = 0] = loadavg()
  const isCrowded = load > 2 * availableParallelism()
  const slower = slowness()
  const isSoon = (isCrowded ? medianCpu : median) <= maxReadyMs * slower
  if (isCrowded) say('the machine is crowded: what counts is the work')
  if (slower > 1.2) say(`the machine is ${slower.toFixed(1)} times slower than the quiet one that limits in ms are for`)
  for (const problem of problems.slice(0, 20)) say(`PROBLEM ${problem}`)
  const isOk = problems.length === 0 && isSoon
  return { ok: isOk, figures: { ...figures, readyMs: median, slowestReadyMs: slowest, problems: problems.length } }
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Infinity
}
