// A process of its own that reads broken logs, so that a crash, a hang and its memory are seen from outside:
// `reading-process.ts corpus <folder>` or `reading-process.ts fuzz <folder> <first seed> <count>`
import { writeSync } from 'node:fs'
import { malformedFiles } from '../../corpus/malformed-files.ts'
import { Fuzz, mutatedLog } from './fuzz.ts'
import { OnDisk } from './on-disk.ts'
import type { ReadingReport } from './reports.ts'

const [mode, folder = '', firstSeed = '0', count = '0'] = process.argv.slice(2)
const onDisk = new OnDisk(folder)
let done = 0
let filesOnDisk = 0
let slowestMs = 0

await read('warming up', () => onDisk.try(mutatedLog(1)))
const before = process.memoryUsage.rss()
if (mode === 'corpus') await readCorpus()
else await fuzz(Number(firstSeed), Number(count))
await onDisk.close()
const grownBytes = process.resourceUsage().maxRSS * 1024 - before
say({ type: 'end', done: done - 1, onDisk: filesOnDisk, slowestMs, grownBytes })

async function readCorpus(): Promise<void> {
  for (const { name, bytes, ...demands } of malformedFiles()) {
    filesOnDisk++
    await read(name, () => onDisk.try(bytes, demands))
    if (done % 50 === 0) say({ type: 'progress', done, at: name })
  }
}

/** Every log is read from memory, every eleventh twice, every hundredth also as a file. */
async function fuzz(first: number, executions: number): Promise<void> {
  const reader = new Fuzz()
  for (let execution = 0; execution < executions; execution++) {
    const seed = (first + execution) >>> 0
    const what = `mutatedLog(${seed})`
    const isEven = execution % 2 === 0
    await read(what, () => reader.try(seed, { lines: isEven, verify: !isEven, isTwice: execution % 11 === 0 }))
    if (execution % 100 === 0) {
      filesOnDisk++
      await read(`${what} as a file`, () => onDisk.try(mutatedLog(seed)))
      done--
    }
    if (execution % 500 === 0) say({ type: 'progress', done: execution, at: what })
  }
}

async function read(what: string, work: () => Promise<string[]>): Promise<void> {
  const start = performance.now()
  let problems: string[]
  try {
    problems = await work()
  } catch (error) {
    problems = [`thrown: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`]
  }
  slowestMs = Math.max(slowestMs, performance.now() - start)
  done++
  if (problems.length > 0) say({ type: 'failure', what, problems })
}

function say(report: ReadingReport): void {
  writeSync(1, `${JSON.stringify(report)}\n`)
}
