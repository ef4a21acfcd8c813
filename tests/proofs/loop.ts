import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { makeBase } from './loop/base.ts'
import { emptyTally, sequenceJobs, sum, type Failure, type Job, type Tally } from './loop/jobs.ts'
import type { Base } from './loop/scene.ts'
import type { Case, Setup } from './loop/setup.ts'
import { runOnThreads } from './loop/threads.ts'
import { play } from './loop/walks.ts'

export const name = 'loop'
export const claim = 'Under any interruption each call has one result, no steering message is lost, and the run ends.'

export const sizes = {
  ci: { depth: 4, otherDepth: 3, everyTick: 3, walks: 5000 },
  full: { depth: 6, otherDepth: 4, everyTick: 1, walks: 1_000_000 },
}
const walksInJob = 500
const maxTick = 40
const maxFailures = 5
const progressEveryMs = 20_000

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
  { ...main, hasBackground: true },
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
  { setup: { ...main, hasBackground: true }, begin: ['filling', 'tool:c1', 'tool:c2'] },
  {
    setup: { ...main, hasBackground: true },
    begin: ['filling', 'tool:c1', 'tool:c2', 'end', 'prompt', 'compaction', 'call'],
  },
]

/**
 * The real loop with everything around it driven by hand: every sequence of actions of some length, every pair of actions a few
 * microtasks apart, and long random ways. `LOOP_CASE` plays one case and tells of it.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const base = await makeBase()
  const chosen = process.env['LOOP_CASE']
  if (chosen !== undefined) return playOne(JSON.parse(chosen) as Case, base, context)
  const jobs = await jobsOf(context, base)
  const tallies = { walks: emptyTally(), sequences: emptyTally(), pairs: emptyTally() }
  const failures: Failure[] = []
  const tellProgress = progressOf(jobs.length, context)
  await runOnThreads(jobs, {
    base,
    onTally: ({ type }, tally) => {
      tallies[type] = sum([tallies[type], tally])
      failures.push(...tally.failures)
      tellProgress(sum(Object.values(tallies)))
      return failures.length < maxFailures ? 'go-on' : 'stop'
    },
  })
  for (const [type, tally] of Object.entries(tallies)) context.say(`${type}: ${inWords(tally)}`)
  for (const failure of failures) tell(failure, context)
  const { failures: _, ...counts } = sum(Object.values(tallies))
  return {
    ok: failures.length === 0,
    figures: {
      ...counts,
      sequences: tallies.sequences.cases,
      pairs: tallies.pairs.cases,
      walks: tallies.walks.cases,
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

/** A long run says now and then how far it is. */
function progressOf(jobs: number, { say }: FigureContext): (tally: Tally) => void {
  let done = 0
  let toldAt = performance.now()
  return ({ cases, failures }) => {
    done++
    if (performance.now() - toldAt < progressEveryMs) return
    toldAt = performance.now()
    say(`${done} of ${jobs} jobs, ${cases} cases, ${failures.length} problems`)
  }
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
  if (seed !== undefined) say(`  again as the first walk: npm run proof loop -- --seed ${seed}`)
  say(`  alone: LOOP_CASE='${JSON.stringify({ setup, actions })}' npm run proof loop`)
}
