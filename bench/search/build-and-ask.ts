// A fresh process: builds the index by searching once, asks all questions, and prints what that took.
import { once } from 'node:events'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { openFileStore } from '@tapetree/session/stores/file'
import { maxTries } from '../../scripts/figure/tries.ts'

export interface Asked {
  build: { ms: number; indexBytes: number; delayP99Ms: number; delayMaxMs: number; bareDelayP99Ms: number }
  answers: Answer[]
  /** A stat of every log. */
  lookMs: number
  /** Reading every log and looking for one word in its bytes. */
  scanMs: number
}

interface Answer {
  kind: string
  text: string
  /** Of the first try. */
  firstMs: number
  /** Of the shortest. */
  ms: number
  hits: number
}

/** A question that takes longer is asked again. */
const limitMs = 100

const [folder = '', questionFile = ''] = process.argv.slice(2)
const questions = JSON.parse(readFileSync(questionFile, 'utf8')) as Record<string, string[]>
const logs = readdirSync(folder)
  .map((name) => join(folder, name, 'events.jsonl'))
  .filter((path) => statSync(path, { throwIfNoEntry: false }))

const store = openFileStore({ folder })
const bareLoop = new Worker(new URL('./bare-loop.ts', import.meta.url), { workerData: { file: join(folder, '.bare') } })
await once(bareLoop, 'online')
const delay = monitorEventLoopDelay({ resolution: 2 })
delay.enable()
const buildMs = await taking(() => store.search({ text: 'everything' }))
delay.disable()
bareLoop.postMessage('end')
const [bareDelayP99Ms] = (await once(bareLoop, 'message')) as [number]
const indexBytes = readdirSync(folder)
  .filter((name) => name.startsWith('index-'))
  .reduce((bytes, name) => bytes + statSync(join(folder, name)).size, 0)

const answers: Asked['answers'] = []
for (const [kind, texts] of Object.entries(questions)) {
  for (const text of texts) {
    answers.push({ kind, text, ...(await ask(text)) })
  }
}
await store.close()

const lookMs = await taking(async () => logs.forEach((path) => statSync(path)))
const scanMs = await taking(async () => logs.filter((path) => readFileSync(path).includes('everything')))
const build = {
  ms: buildMs,
  indexBytes,
  delayP99Ms: delay.percentile(99) / 1e6,
  delayMaxMs: delay.max / 1e6,
  bareDelayP99Ms,
}
console.log(JSON.stringify({ build, answers, lookMs, scanMs } satisfies Asked))

async function ask(text: string): Promise<Pick<Answer, 'firstMs' | 'ms' | 'hits'>> {
  const times: number[] = []
  let hits = 0
  while (times.length < maxTries && times.every((ms) => ms > limitMs)) {
    times.push(await taking(async () => (hits = (await store.search({ text, limit: 20 })).length)))
  }
  return { firstMs: times[0] as number, ms: Math.min(...times), hits }
}

async function taking(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
