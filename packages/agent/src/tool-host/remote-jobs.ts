import type { Job, JobOutput, ReadJobOptions } from '../tools/commands/jobs.ts'
import { conversation } from './conversation.ts'
import { maxJobWaitMs, type HostMessage } from './messages.ts'
import type { HostChannel } from './remote-workspace.ts'

/** For an answer; waiting for output is added. */
const patienceMs = 10_000

export interface ReadRemoteJobOptions extends ReadJobOptions {
  /** How long the host waits for output after `after`. */
  waitMs?: number
}

/** The background commands of a session on its tool host, as `Jobs` has those of this machine. Rejects with `HostUnavailable`. */
export class RemoteJobs {
  readonly #channel: HostChannel
  readonly #session: string

  constructor(channel: HostChannel, sessionId: string) {
    this.#channel = channel
    this.#session = sessionId
  }

  /** The running jobs of the session, and those that ended recently; the newest first. */
  async list(): Promise<Job[]> {
    const session = this.#session
    const { jobs } = await conversation(this.#channel, { patienceMs })('jobs', (id) => ({ type: 'jobs', id, session }))
    return jobs
  }

  /** The newest output of a job. Undefined if the session has no such job. */
  async read(job: string, options: ReadRemoteJobOptions): Promise<JobOutput | undefined> {
    const { limitBytes, after, waitMs = 0, signal } = options
    const session = this.#session
    const wait = Math.min(waitMs, maxJobWaitMs)
    const ask = conversation(this.#channel, { patienceMs: patienceMs + wait, ...(signal && { signal }) })
    const { jobs, output } = await ask('jobs', (id) => ({
      ...{ type: 'job_output', id, session, job, limitBytes },
      ...(after !== undefined && { after, waitMs: wait }),
    }))
    const found = only(jobs, job)
    return found && output && { job: found, ...output }
  }

  /** Stops a job with all of its processes. Undefined if the session has no such job. */
  async stop(job: string): Promise<Job | undefined> {
    const session = this.#session
    const ask = conversation(this.#channel, { patienceMs })
    const { jobs } = await ask('jobs', (id) => ({ type: 'stop_job', id, session, job }))
    return only(jobs, job)
  }
}

/** A host might answer with another one. */
function only(jobs: Extract<HostMessage, { type: 'jobs' }>['jobs'], id: string): Job | undefined {
  return jobs.find((job) => job.id === id)
}
