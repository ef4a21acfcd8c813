// The server that the crowd comes to.
import type { LiveSession } from '../../packages/server/src/live/live-session.ts'
import { answerParent } from '../wire/answer-parent.ts'
import { settledMemory } from '../wire/memory.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import { startProduct, type ProductAddress, type ProductOptions } from '../wire/product.ts'

/** Makes a line of 300 bytes. */
const text = 'x'.repeat(69)
let live: LiveSession[] = []

answerParent({
  /** The sessions have a past: so many lines, of all together. */
  start: async ({ lines, ...options }: ProductOptions & { lines: number }): Promise<ProductAddress> => {
    const product = await startProduct(options)
    live = product.live
    const each = Array.from({ length: lines / live.length }, () => live.map(append))
    await Promise.all(each.flat())
    return product.address
  },
  /** A line in each session, all at once. */
  append: () => {
    const startMs = monotonicMs()
    for (const session of live) void append(session)
    return startMs
  },
  /** The newest line of a session, as it was sent. */
  newestLine: () => {
    const { lines, session } = live[0] as LiveSession
    return lines.after(session.head.seq - 1)?.bytes.toString()
  },
  memory: settledMemory,
})

async function append({ session }: LiveSession): Promise<void> {
  await session.appendCustomEntry('bench', { text })
}
