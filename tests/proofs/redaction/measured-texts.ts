import { parentPort, workerData } from 'node:worker_threads'
import { createRedactor } from '../../../packages/redact/src/redactor.ts'
import { median } from '../../../scripts/figure/percentile.ts'
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

/** Ordinary text is fast: this many passes take about as long as a slow text, so that both meet the same machine. */
const ordinaryPasses = 5

if (parentPort) {
  const { policy, ordinary, texts, limit } = workerData as TextsToMeasure
  const redactor = createRedactor(policy)
  const measured = texts.map((): number[] => [])
  const isOver = (): boolean => measured.some((ratios) => median(ratios) > limit)
  for (let tries = 0; tries < 6 || (isOver() && tries < 6 * maxTries); tries++) {
    for (const [index, text] of texts.entries()) {
      const passes = Array.from({ length: ordinaryPasses }, () => nsPerCharacter(redactor, ordinary))
      const bare = passes.reduce((sum, ns) => sum + ns, 0) / ordinaryPasses
      measured[index]?.push(nsPerCharacter(redactor, text) / bare)
    }
  }
  parentPort.postMessage(measured.map(median))
}
