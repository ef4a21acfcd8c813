import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { runJob, type Job, type Tally } from './providers/jobs.ts'
import { missingKinds } from './providers/kinds.ts'
import { nameOf, pairs } from './providers/subjects.ts'

export const name = 'providers'
export const claim = 'Everything that a provider streams is logged faithfully: complete, cut off or unknown.'
export const sizes = { ci: { conversations: 2000 }, full: { conversations: 200_000 } }

const threads = 2
const conversationsInJob = 50
const progressEveryMs = 20_000
const maxShown = 30

/**
 * Sessions whose models stream every kind of event that providers are known to send, and unknown siblings, in any chunking, cut and
 * aborted, with switches and fallbacks between all providers and hosts. The strict provider must accept every request, and the log
 * must equal an independent reading of the bytes. `PROVIDERS_CASE` plays the conversation of one seed.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const chosen = process.env['PROVIDERS_CASE']
  if (chosen !== undefined) return report(await runJob({ seeds: [Number(chosen)] }), context)
  const total: Tally = { counts: {}, kinds: [], switches: [], problems: [] }
  const tellProgress = progressOf(context)
  await runOnThreads(jobsOf(context), (tally) => {
    for (const [figure, count] of Object.entries(tally.counts))
      total.counts[figure] = (total.counts[figure] ?? 0) + count
    total.kinds = [...new Set([...total.kinds, ...tally.kinds])]
    total.switches = [...new Set([...total.switches, ...tally.switches])]
    total.problems.push(...tally.problems)
    for (const { seed, text } of tally.problems) if (context.size === 'full') context.say(problemLine(seed, text))
    tellProgress(total)
  })
  const untried = [
    ...missingKinds(new Set(total.kinds)),
    ...pairs.map(([from, to]) => `${nameOf(from)} > ${nameOf(to)}`).filter((pair) => !total.switches.includes(pair)),
  ].map((what) => ({ seed: context.seed, text: `It did not try: ${what}` }))
  return report({ ...total, problems: [...total.problems, ...untried] }, context)
}

function jobsOf({ size, seed }: FigureContext): Job[] {
  const first = seed * 1_000_003
  return Array.from({ length: sizes[size].conversations / conversationsInJob }, (_, job) => ({
    seeds: Array.from({ length: conversationsInJob }, (_, place) => first + job * conversationsInJob + place),
  }))
}

async function runOnThreads(jobs: Job[], onTally: (tally: Tally) => void): Promise<void> {
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const worker = new Worker(new URL('providers/worker.ts', import.meta.url))
      try {
        for (let job = jobs.shift(); job; job = jobs.shift()) {
          worker.postMessage(job)
          const [tally] = (await once(worker, 'message')) as [Tally]
          onTally(tally)
        }
      } finally {
        await worker.terminate()
      }
    }),
  )
}

function progressOf({ say }: FigureContext): (total: Tally) => void {
  let toldAt = performance.now()
  return ({ counts, problems }) => {
    if (performance.now() - toldAt < progressEveryMs) return
    toldAt = performance.now()
    say(`${counts['conversations']} conversations, ${counts['requests']} requests, ${problems.length} problems`)
  }
}

function problemLine(seed: number, text: string): string {
  return `PROBLEM in PROVIDERS_CASE=${seed}: ${text.slice(0, 800)}`
}

/** Problems that differ only in ids and numbers are shown once. */
function report({ counts, kinds, switches, problems }: Tally, { say }: FigureContext): FigureResult {
  const shown = Map.groupBy(problems, ({ text }) => {
    return text
      .replace(/"runId":"[^"]+"/, '')
      .replace(/\bmark\d+x/g, 'mark')
      .replace(/\d+/g, 'n')
      .slice(0, 160)
  })
  const ordered = [...shown.values()].sort((left, right) => right.length - left.length)
  for (const same of ordered.slice(0, maxShown)) {
    const [{ seed, text }] = same as [Tally['problems'][number]]
    say(`${problemLine(seed, text)} (${same.length} times)`)
  }
  const figures = { ...counts, kinds: kinds.length, switches: switches.length, problems: problems.length }
  return { ok: problems.length === 0, figures }
}
