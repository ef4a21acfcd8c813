// A server that nobody works on: each request opens the session that it asks for, and closes it again.
import { once } from 'node:events'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Worker } from 'node:worker_threads'
import { openFileStore } from '@tapetree/session/stores/file'
import { writeCompactedSession } from '../session/generate.ts'
import { answerParent } from '../wire/answer-parent.ts'
import { startProduct, type ProductAddress } from '../wire/product.ts'

export interface LoopDelays {
  delayP99Ms: number
  bareDelayP99Ms: number
}

const delay = monitorEventLoopDelay({ resolution: 2 })
let bareLoop: Worker
let cpu: NodeJS.CpuUsage

answerParent({
  start: async ({ folder, lengths }: { folder: string; lengths: Record<string, number> }): Promise<ProductAddress> => {
    const sessions = join(folder, 'sessions')
    for (const [id, entries] of Object.entries(lengths)) {
      // The compaction stands at the beginning: the context is all of the session.
      writeCompactedSession(sessions, { id, entries, after: entries - 4 })
    }
    const store = openFileStore({ folder: sessions })
    for (const id of Object.keys(lengths)) {
      const session = await store.open(id)
      await session.saveDerived()
      await session.close()
    }
    await store.close()
    return (await startProduct({ folder, sessions: 0 })).address
  },
  startCpu: () => void (cpu = process.cpuUsage()),
  endCpu: (): number => {
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / 1000
  },
  /** The loop of this server beside that of a thread which works in short slices, as any server does. */
  startDelays: async ({ folder }: { folder: string }): Promise<void> => {
    const workerData = { file: join(folder, '.bare') }
    bareLoop = new Worker(new URL('../search/bare-loop.ts', import.meta.url), { workerData })
    await once(bareLoop, 'online')
    delay.reset()
    delay.enable()
  },
  endDelays: async (): Promise<LoopDelays> => {
    delay.disable()
    const answered = once(bareLoop, 'message')
    bareLoop.postMessage('end')
    const [bareDelayP99Ms] = (await answered) as [number]
    return { delayP99Ms: delay.percentile(99) / 1e6, bareDelayP99Ms }
  },
})
