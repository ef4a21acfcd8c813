import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { maxTries } from '../../scripts/figure/tries.ts'
import { openHugeFiles } from './loader/huge.ts'
import { memoryLimit } from './loader/memory-limit.ts'
import { tryOddPlaces } from './loader/odd-places.ts'
import type { ReadingReport } from './loader/reports.ts'
import { runChild } from './loader/run-child.ts'

export const name = 'loader'
export const claim = 'No damaged file makes the loader crash, hang or lose an intact line.'
export const sizes = { ci: { executions: 40_000 }, full: { executions: 1_000_000 } }

/** Broken logs, made at random, made by hand, and made huge: none crashes or hangs the loader, and what is intact is shown. */
export async function run(context: FigureContext): Promise<FigureResult> {
  const { executions } = sizes[context.size]
  const failures: string[] = []
  const fuzz = await readInChild(context, failures, [
    'fuzz',
    await context.temporaryFolder(),
    String(context.seed),
    String(executions),
  ])
  const corpus = await readInChild(context, failures, ['corpus', await context.temporaryFolder()])
  const huge = await openHugeFiles({ root: await context.temporaryFolder(), size: context.size, say: context.say })
  failures.push(...huge.failures)
  await openOddPlaces(context, failures)
  for (const failure of failures.slice(0, 40)) context.say(`FAILED ${failure}`)
  if (fuzz.done < executions) failures.push(`only ${fuzz.done} of ${executions} executions were done`)
  if (corpus.done < 300) failures.push(`the corpus has only ${corpus.done} files`)
  return {
    ok: failures.length === 0,
    figures: {
      executions: fuzz.done,
      asFiles: fuzz.onDisk,
      corpus: corpus.done,
      huge: huge.reports.length,
      slowestMsPerMb: Math.round(Math.max(...huge.reports.map(({ msPerMegabyte }) => msPerMegabyte))),
      grownMb: Math.round(Math.max(...[fuzz, corpus, ...huge.reports].map(({ grownBytes }) => grownBytes)) / 1e6),
      failures: failures.length,
    },
  }
}

type End = ReadingReport & { type: 'end' }

/**
 * The memory of a process at its worst depends on when its garbage was collected: between 86 and 171 MB in runs of one seed. What needs so
 * much needs it every time.
 */
async function readInChild(context: FigureContext, failures: string[], args: string[]): Promise<End> {
  for (let tries = 1; ; tries++) {
    const found: string[] = []
    const end = await readOnce(context, found, args)
    const limit = await memoryLimit(await context.temporaryFolder())
    const isTooMuch = end.grownBytes > limit
    const problem = `${args[0]}: takes ${Math.round(end.grownBytes / 1e6)} MB of memory, allowed ${Math.round(limit / 1e6)} MB`
    if (isTooMuch && found.length === 0 && tries < maxTries) {
      context.say(`${problem}; once more`)
      continue
    }
    failures.push(...found, ...(isTooMuch ? [problem] : []))
    return end
  }
}

async function readOnce(context: FigureContext, failures: string[], args: string[]): Promise<End> {
  let end: End = { type: 'end', done: 0, onDisk: 0, slowestMs: 0, grownBytes: 0 }
  let last = 'its start'
  const failure = await runChild({
    program: 'reading-process.ts',
    args,
    silenceMs: 60_000,
    onLine: (line) => {
      const report = JSON.parse(line) as ReadingReport
      if (report.type === 'progress') last = report.at
      else if (report.type === 'end') end = report
      else failures.push(`${report.what}: ${report.problems.join('; ')}`)
    },
  })
  const { done, onDisk, slowestMs, grownBytes } = end
  if (failure !== undefined) failures.push(`${args[0]}: ${failure}, not long after ${last}`)
  const cost = `slowest ${Math.round(slowestMs)} ms, memory +${Math.round(grownBytes / 1e6)} MB`
  context.say(`${args[0]}: ${done} broken logs read, ${onDisk} of them as files, ${cost}`)
  return end
}

async function openOddPlaces(context: FigureContext, failures: string[]): Promise<void> {
  const odd = await tryOddPlaces(await context.temporaryFolder())
  failures.push(...odd.failures)
  const failure = await runChild({
    program: 'open-denied.ts',
    args: [await context.temporaryFolder()],
    silenceMs: 20_000,
    onLine: (line) => failures.push(...(JSON.parse(line) as string[])),
  })
  if (failure !== undefined) failures.push(`a file nobody may read: ${failure}`)
  context.say(`${odd.tried + 2} things in the place of a log: folders, pipes, links, files without rights`)
}
