// One server of a service, whose sessions stream and grow.
import type { LiveSession } from '../../packages/server/src/live/live-session.ts'
import { measureLoop, type LoopMeasure } from '../sessions/measure-loop.ts'
import { readModel } from '../sessions/read-model.ts'
import { answerParent } from '../wire/answer-parent.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import { startProduct, type ProductAddress, type ProductOptions } from '../wire/product.ts'

export interface Appended extends LoopMeasure {
  appends: number
}

/** Makes a line of 300 bytes. */
const text = 'x'.repeat(69)
let live: LiveSession[] = []

answerParent({
  start: async (options: ProductOptions & { scriptPort: number }): Promise<ProductAddress> => {
    const product = await startProduct({ ...options, modelOf: () => readModel(options.scriptPort, 0) })
    live = product.live
    return product.address
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
  /** Appends a number of lines each second, to one session after the other. */
  append: async ({ ms, rate }: { ms: number; rate: number }): Promise<Appended> => {
    const startMs = monotonicMs()
    const appended: Promise<unknown>[] = []
    const timer = setInterval(() => {
      const due = (rate * (monotonicMs() - startMs)) / 1000
      while (appended.length < due) {
        const { session } = live[appended.length % live.length] as LiveSession
        appended.push(session.appendCustomEntry('bench', { text }))
      }
    }, 5)
    const measured = await measureLoop(ms)
    clearInterval(timer)
    await Promise.all(appended)
    return { ...measured, appends: appended.length }
  },
})
