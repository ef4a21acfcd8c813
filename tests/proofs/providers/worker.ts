// A thread of the proof: plays one job after the other.
import { parentPort } from 'node:worker_threads'
import { runJob, type Job } from './jobs.ts'

parentPort?.on('message', (job: Job) => {
  void runJob(job).then((tally) => parentPort?.postMessage(tally))
})
