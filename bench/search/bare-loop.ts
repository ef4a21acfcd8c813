// A thread that does nothing but what any builder must: it works for a slice, writes what a transaction writes, and lets others run.
// How long its loop is held up, at the same time and on the same disk, is what the machine alone costs.
import { closeSync, openSync, writeSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

const { file } = workerData as { file: string }
const transaction = Buffer.alloc(64 * 1024, 'tapetree')
const sliceMs = 5

const end = new AbortController()
parentPort?.once('message', () => end.abort())

const delay = monitorEventLoopDelay({ resolution: 2 })
delay.enable()
const output = openSync(file, 'w')
while (!end.signal.aborted) {
  const start = performance.now()
  while (performance.now() - start < sliceMs) JSON.stringify({ start })
  writeSync(output, transaction, 0, transaction.length, 0)
  await setImmediate()
}
closeSync(output)
delay.disable()
parentPort?.postMessage(delay.percentile(99) / 1e6)
