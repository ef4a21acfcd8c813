import { parentPort } from 'node:worker_threads'
import { playHistory, type HistoryOptions } from './history.ts'

const { setTimeout, setInterval, setImmediate, Date } = globalThis
const { random } = Math

parentPort?.on('message', (options: HistoryOptions) => {
  void playHistory(options).then((result) => {
    const problems = isAsItWas() ? [] : ['the history did not give back the timers, the clock or the random numbers']
    parentPort?.postMessage({ ...result, problems: [...result.problems, ...problems] })
  })
})

/** The next history of this thread needs the real ones, too. */
function isAsItWas(): boolean {
  const now = [globalThis.setTimeout, globalThis.setInterval, globalThis.setImmediate, globalThis.Date, Math.random]
  return [setTimeout, setInterval, setImmediate, Date, random].every((real, index) => real === now[index])
}
