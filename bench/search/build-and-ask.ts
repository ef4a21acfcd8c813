// A fresh process: builds the index by searching once, asks all questions, and prints what that took.
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { openFileStore } from '@tapetree/session/stores/file'

export interface Asked {
  build: { ms: number; indexBytes: number; delayP99Ms: number; delayMaxMs: number }
  answers: { kind: string; text: string; ms: number; hits: number }[]
  /** A stat of every log. */
  lookMs: number
  /** Reading every log and looking for one word in its bytes. */
  scanMs: number
}

const [folder = '', questionFile = ''] = process.argv.slice(2)
const questions = JSON.parse(readFileSync(questionFile, 'utf8')) as Record<string, string[]>
const logs = readdirSync(folder)
  .map((name) => join(folder, name, 'events.jsonl'))
  .filter((path) => statSync(path, { throwIfNoEntry: false }))

const store = openFileStore({ folder })
const delay = monitorEventLoopDelay({ resolution: 2 })
delay.enable()
const buildMs = await taking(() => store.search({ text: 'everything' }))
delay.disable()
const indexBytes = readdirSync(folder)
  .filter((name) => name.startsWith('index-'))
  .reduce((bytes, name) => bytes + statSync(join(folder, name)).size, 0)

const answers: Asked['answers'] = []
for (const [kind, texts] of Object.entries(questions)) {
  for (const text of texts) {
    let hits = 0
    const ms = await taking(async () => {
      hits = (await store.search({ text, limit: 20 })).length
    })
    answers.push({ kind, text, ms, hits })
  }
}
await store.close()

const lookMs = await taking(async () => logs.forEach((path) => statSync(path)))
const scanMs = await taking(async () => logs.filter((path) => readFileSync(path).includes('everything')))
const build = { ms: buildMs, indexBytes, delayP99Ms: delay.percentile(99) / 1e6, delayMaxMs: delay.max / 1e6 }
console.log(JSON.stringify({ build, answers, lookMs, scanMs } satisfies Asked))

async function taking(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
