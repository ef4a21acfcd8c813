// The server whose readers stall. Pours events into one session, one after the other.
import type { Connection } from '../../packages/server/src/live/connection.ts'
import type { LiveSession } from '../../packages/server/src/live/live-session.ts'
import { answerParent } from '../wire/answer-parent.ts'
import { settledMemory } from '../wire/memory.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import { startProduct, type ProductAddress } from '../wire/product.ts'

export interface Poured {
  /** The last line. */
  seq: number
  /** The most that any connection had not sent. */
  maxBuffered: number
  /** The least that any stalled one had not sent, at the end. */
  minStalled: number
  maxFrame: number
  maxRss: number
}

let live: LiveSession

answerParent({
  start: async ({ folder }: { folder: string }): Promise<ProductAddress> => {
    const product = await startProduct({ folder, sessions: 1 })
    live = product.live[0] as LiveSession
    return product.address
  },
  pour: async ({ bytes, lineBytes }: { bytes: number; lineBytes: number }): Promise<Poured> => {
    const padding = 'x'.repeat(lineBytes - 230)
    const poured: Poured = { seq: 0, maxBuffered: 0, minStalled: 0, maxFrame: 0, maxRss: 0 }
    const stop = live.session.subscribe(({ text }) => {
      poured.maxFrame = Math.max(poured.maxFrame, text.length)
    })
    for (let line = 0; line < bytes / lineBytes; line++) {
      await live.session.appendCustomEntry('bench', { at: monotonicMs(), padding })
      // Each look takes time that the readers are not given.
      if (line % 16 === 0) look(poured)
    }
    look(poured)
    stop()
    const stalled = [...live.connections].filter(isStalled).map(({ buffered }) => buffered)
    return { ...poured, seq: live.session.head.seq, minStalled: stalled.length > 0 ? Math.min(...stalled) : 0 }
  },
  memory: settledMemory,
})

function isStalled({ client }: Connection): boolean {
  return client.id.startsWith('stalled')
}

function look(poured: Poured): void {
  for (const { buffered } of live.connections) poured.maxBuffered = Math.max(poured.maxBuffered, buffered)
  poured.maxRss = Math.max(poured.maxRss, process.memoryUsage.rss())
}
