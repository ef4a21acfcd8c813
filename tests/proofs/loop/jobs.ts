import { randomFrom } from '../../../scripts/figure/random.ts'
import { Scene, type Base } from './scene.ts'
import type { Case, Setup } from './setup.ts'
import { everyPair, everySequence, randomWalk, shrink, type Played } from './walks.ts'

/** A part of the proof that needs nothing of the others. */
export type Job =
  /** Every sequence of so many actions that begins like this. */
  | { type: 'sequences'; setup: Setup; begin: readonly string[]; depth: number }
  /** Every two actions, the second so many microtasks after the first. */
  | { type: 'pairs'; setup: Setup; begin: readonly string[]; ticks: readonly number[] }
  /** One walk for each of these seeds. */
  | { type: 'walks'; seed: number; count: number }

export interface Failure extends Case {
  problem: string
  /** Of a walk. */
  seed?: number
}

/** What was tried. */
export interface Tally {
  cases: number
  actions: number
  requests: number
  crashes: number
  resumes: number
  runs: number
  answers: number
  compactions: number
  attempts: number
  steers: number
  followUps: number
  failures: Failure[]
}

const maxFailures = 3

export function emptyTally(): Tally {
  return {
    cases: 0,
    actions: 0,
    requests: 0,
    crashes: 0,
    resumes: 0,
    runs: 0,
    answers: 0,
    compactions: 0,
    attempts: 0,
    steers: 0,
    followUps: 0,
    failures: [],
  }
}

/** Plays all cases of a job, or as many as it takes to see what is wrong. `note` is told of each before it is played. */
export async function runJob(job: Job, base: Base, note: (what: string) => void): Promise<Tally> {
  const tally = emptyTally()
  for await (const { played, seed } of casesOf(job, base, note)) {
    add(tally, played)
    if (!played.problem) continue
    const { setup, actions, problem = played.problem } = await shrink(played, base)
    tally.failures.push({ setup, actions, problem, ...(seed !== undefined && { seed }) })
    if (tally.failures.length >= maxFailures) break
  }
  return tally
}

interface PlayedCase {
  played: Played
  seed?: number
}

async function* casesOf(job: Job, base: Base, note: (what: string) => void): AsyncGenerator<PlayedCase> {
  switch (job.type) {
    case 'sequences':
      for await (const played of everySequence(job, base, note)) yield { played }
      return
    case 'pairs':
      for await (const played of everyPair(job, base, note)) yield { played }
      return
    case 'walks':
      for (let walk = 0; walk < job.count; walk++) {
        const seed = (job.seed + walk) >>> 0
        note(`the walk of seed ${seed}`)
        yield { played: await randomWalk(randomFrom(seed), base), seed }
      }
      return
    default:
      job satisfies never
  }
}

function add(tally: Tally, { scene }: Played): void {
  const { counts } = scene.log
  tally.cases++
  tally.actions += scene.trace.length
  tally.requests += scene.requests
  tally.crashes += scene.crashes
  tally.resumes += counts.resumes
  tally.runs += counts.runs
  tally.answers += counts.turns
  tally.compactions += counts.compactions
  tally.attempts += counts.attempts
  tally.steers += counts.steers
  tally.followUps += counts.followUps
}

export function sum(tallies: readonly Tally[]): Tally {
  const total = emptyTally()
  for (const { failures, ...counts } of tallies) {
    for (const [name, count] of Object.entries(counts)) total[name as keyof typeof counts] += count
    total.failures.push(...failures)
  }
  return total
}

/** All sequences of this length as several jobs, one for each first action. */
export async function sequenceJobs(setup: Setup, depth: number, base: Base): Promise<Job[]> {
  const scene = await Scene.open(setup, base)
  return scene.actions().map((action): Job => ({ type: 'sequences', setup, begin: [action], depth }))
}
