import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { makeBase } from './loop/base.ts'
import { emptyTally, sequenceJobs, sum, type Failure, type Job, type Tally } from './loop/jobs.ts'
import type { Base } from './loop/scene.ts'
import type { Case, Setup } from './loop/setup.ts'
import { runOnThreads } from './loop/threads.ts'
import { play } from './loop/walks.ts'

export const name = 'loop'

const sizes = {
  ci: { depth: 4, otherDepth: 3, everyTick: 3, walks: 5000 },
  full: { depth: 6, otherDepth: 4, everyTick: 1, walks: 1_000_000 },
}
const walksInJob = 500
const maxTick = 40
const maxFailures = 5

/** Two calls side by side are open: the state that the promise is made for. */
const main: Setup = { policy: 'skip-remaining', calls: ['look', 'look'], begins: 'with-calls' }

const others: Setup[] = [
  { ...main, policy: 'after-batch' },
  { ...main, policy: 'interrupt' },
  { ...main, calls: ['write', 'write'] },
  { ...main, calls: ['command', 'look'], policy: 'interrupt' },
  { ...main, calls: ['look', 'write'], isAsking: true },
  { ...main, isDiskSlow: true },
  { ...main, isDeaf: true, hasDeadline: true },
  { ...main, tail: 'error' },
  { ...main, begins: 'before-the-answer' },
]

/** Where something sudden happens while something else is under way. */
const moments: { setup: Setup; begin: string[] }[] = [
  { setup: main, begin: [] },
  { setup: main, begin: ['steer', 'tool:c1'] },
  { setup: { ...main, calls: ['write', 'write'] }, begin: [] },
  { setup: { ...main, isAsking: true }, begin: [] },
  { setup: { ...main, begins: 'before-the-answer' }, begin: ['follow-up', 'follow-up'] },
  { setup: { ...main, begins: 'before-the-answer' }, begin: ['error'] },
  { setup: { ...main, begins: 'before-the-answer' }, begin: ['follow-up', 'overflow'] },
  { setup: main, begin: ['compaction', 'tool:c1'] },
  { setup: main, begin: ['follow-up', 'abort'] },
]

/**
 * The real loop with everything around it driven by hand: every sequence of actions of some length, every pair of actions a few
 * microtasks apart, and long random ways. `LOOP_CASE` plays one case and tells of it.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const base = await makeBase()
  const chosen = process.env['LOOP_CASE']
  if (chosen !== undefined) return playOne(JSON.parse(chosen) as Case, base, context)
  const tallies = new Map<Job['type'], Tally[]>()
  const failures: Failure[] = []
  await runOnThreads(await jobsOf(context, base), {
    base,
    onTally: (job, tally) => {
      tallies.set(job.type, [...(tallies.get(job.type) ?? []), tally])
      failures.push(...tally.failures)
      return failures.length < maxFailures ? 'go-on' : 'stop'
    },
  })
  for (const [type, each] of tallies) context.say(`${type}: ${inWords(sum(each))}`)
  for (const failure of failures) tell(failure, context)
  const { failures: _, ...counts } = sum([...tallies.values()].flat())
  const casesOf = (type: Job['type']): number => sum(tallies.get(type) ?? [emptyTally()]).cases
  return {
    ok: failures.length === 0,
    figures: {
      ...counts,
      sequences: casesOf('sequences'),
      pairs: casesOf('pairs'),
      walks: casesOf('walks'),
      depth: sizes[context.size].depth,
      problems: failures.length,
    },
  }
}

async function jobsOf({ size, seed }: FigureContext, base: Base): Promise<Job[]> {
  const { depth, otherDepth, everyTick, walks } = sizes[size]
  const jobs: Job[] = []
  for (let first = 0; first < walks; first += walksInJob) {
    jobs.push({ type: 'walks', seed: seed + first, count: Math.min(walksInJob, walks - first) })
  }
  jobs.push(...(await sequenceJobs(main, depth, base)))
  for (const setup of others) jobs.push(...(await sequenceJobs(setup, otherDepth, base)))
  const ticks = Array.from({ length: maxTick }, (_, tick) => tick).filter((tick) => (tick + seed) % everyTick === 0)
  for (const moment of moments) jobs.push({ type: 'pairs', ...moment, ticks })
  return jobs
}

async function playOne(chosen: Case, base: Base, { say }: FigureContext): Promise<FigureResult> {
  const { scene, problem } = await play(chosen, base)
  for (const line of scene.lines) say(line)
  say(`what happened: ${scene.trace.join(' ')}`)
  say(problem === undefined ? 'nothing is wrong with it' : `PROBLEM ${problem}`)
  return { ok: problem === undefined, figures: { actions: scene.trace.length } }
}

function inWords(tally: Tally): string {
  const { cases, actions, requests, runs, crashes, compactions, attempts, steers, followUps } = tally
  return (
    `${cases} cases, ${actions} actions, ${runs} runs, ${requests} requests, ${attempts} failed calls, ` +
    `${compactions} compactions, ${steers} steers, ${followUps} follow-ups, ${crashes} crashes`
  )
}

function tell({ setup, actions, problem, seed }: Failure, { say }: FigureContext): void {
  say(`PROBLEM ${problem}`)
  if (seed !== undefined) say(`  seed ${seed}: npm run proof loop -- --seed ${seed}`)
  say(`  alone: LOOP_CASE='${JSON.stringify({ setup, actions })}' npm run proof loop`)
}
