import { parentPort } from 'node:worker_threads'
import { playHistory, type HistoryOptions } from './history.ts'

parentPort?.on('message', (options: HistoryOptions) => {
  void playHistory(options).then((result) => parentPort?.postMessage(result))
})
