// A thread of the proof: plays one job after the other.
import { parentPort, workerData } from 'node:worker_threads'
import { runJob, type Job } from './jobs.ts'
import type { Base } from './scene.ts'

const { base, current } = workerData as { base: Base; current: Uint8Array }
// What is aborted is an error each time, and nobody looks where it came from. A case that is played alone has its traces.
Error.stackTraceLimit = 0

const encoder = new TextEncoder()

/** Should this thread hang, the other one can say over what. */
function note(what: string): void {
  current.fill(0, encoder.encodeInto(what, current).written)
}

parentPort?.on('message', (job: Job) => {
  void runJob(job, base, note).then((tally) => parentPort?.postMessage(tally))
})
