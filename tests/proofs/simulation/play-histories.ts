import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { HistoryOptions, HistoryResult } from './history.ts'

/** Node keeps signals that are never aborted, and a history leaves many behind. They end with their thread. */
const historiesPerThread = 5

/**
 * Plays histories, as many at a time as there are processors. Each has the clocks and the random numbers of its thread for itself.
 * `take` gets each one when it has ended, and returns whether others shall follow.
 */
export async function playHistories(
  histories: readonly HistoryOptions[],
  take: (options: HistoryOptions, result: HistoryResult) => boolean,
): Promise<void> {
  const left = [...histories]
  const work = async (): Promise<void> => {
    while (left.length > 0) {
      const thread = new Worker(new URL('history-thread.ts', import.meta.url))
      try {
        for (let played = 0; played < historiesPerThread; played++) {
          const options = left.shift()
          if (!options) break
          thread.postMessage(options)
          const [result] = (await once(thread, 'message')) as [HistoryResult]
          if (!take(options, result)) left.length = 0
        }
      } finally {
        await thread.terminate()
      }
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
}
