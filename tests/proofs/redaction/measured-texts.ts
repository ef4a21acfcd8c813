import { parentPort, workerData } from 'node:worker_threads'
import { createRedactor } from '../../../packages/redact/src/redactor.ts'
import { maxTries } from '../../../scripts/figure/tries.ts'
import { nsPerCharacter } from './slowest-text.ts'

/** What a worker is given: a thread of its own, whose code is compiled for these texts and not for the thousands of the search. */
export interface TextsToMeasure {
  policy: Parameters<typeof createRedactor>[0]
  ordinary: string
  texts: string[]
  /** Times ordinary text. A text that takes longer is measured again, for code that was just compiled is slow. */
  limit: number
}

if (parentPort) {
  const { policy, ordinary, texts, limit } = workerData as TextsToMeasure
  const redactor = createRedactor(policy)
  let ordinaryNs = Infinity
  const fastest = texts.map(() => Infinity)
  const isOver = (): boolean => fastest.some((ns) => ns > limit * ordinaryNs)
  for (let tries = 0; tries < 6 || (isOver() && tries < 6 * maxTries); tries++) {
    ordinaryNs = Math.min(ordinaryNs, nsPerCharacter(redactor, ordinary))
    for (const [index, text] of texts.entries()) {
      fastest[index] = Math.min(fastest[index] ?? Infinity, nsPerCharacter(redactor, text))
    }
  }
  parentPort.postMessage(fastest.map((ns) => ns / ordinaryNs))
}
