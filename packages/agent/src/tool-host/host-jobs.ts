import type { Clock } from '@tapetree/session/util/wait'
import { Jobs } from '../tools/commands/jobs.ts'
import { hostTexts, send, type HostLink } from './hosted-call.ts'
import { maxListedJobs, type HostMessage, type HostRequest } from './messages.ts'

type JobRequest = Extract<HostRequest, { type: 'jobs' | 'job_output' | 'stop_job' }>
type Answer = Omit<Extract<HostMessage, { type: 'jobs' }>, 'type' | 'id'>

/** More questions at once are refused. */
const maxQuestions = 64

/** Answers what a service asks of the background commands of sessions. Their output has no secrets: the supervisor redacts it. */
export class HostJobs {
  readonly #jobs = new Jobs()
  readonly #folderOf: (session: string) => string
  readonly #clock: Clock
  readonly #closing: AbortSignal
  #asked = 0

  constructor(folderOf: (session: string) => string, { clock, closing }: { clock: Clock; closing: AbortSignal }) {
    this.#folderOf = folderOf
    this.#clock = clock
    this.#closing = closing
  }

  take(request: JobRequest, link: HostLink): void {
    const { id } = request
    const refuse = (reason: string): void => send(link, { type: 'refused', id, reason })
    if (this.#asked >= maxQuestions) return refuse(hostTexts.busy)
    this.#asked++
    this.#answer(request)
      .then(
        (answer) => send(link, { type: 'jobs', id, ...answer }),
        (error: unknown) => refuse(hostTexts.failed(error)),
      )
      .finally(() => this.#asked--)
  }

  async #answer(request: JobRequest): Promise<Answer> {
    const folder = this.#folderOf(request.session)
    switch (request.type) {
      case 'jobs':
        return { jobs: (await this.#jobs.list(folder)).slice(0, maxListedJobs) }
      case 'stop_job': {
        const stopped = await this.#jobs.stop(request.job, folder)
        return { jobs: stopped ? [stopped] : [] }
      }
      case 'job_output': {
        const { job: jobId, limitBytes, after, waitMs = 0 } = request
        const over = new AbortController()
        const signal = AbortSignal.any([over.signal, this.#closing])
        const isWaiting = after !== undefined && waitMs > 0
        if (isWaiting)
          void this.#clock.wait(waitMs, signal).then(
            () => over.abort(),
            () => undefined,
          )
        try {
          const read = await this.#jobs.read(jobId, folder, { limitBytes, ...(isWaiting && { after, signal }) })
          if (!read) return { jobs: [] }
          const { job, ...output } = read
          return { jobs: [job], output }
        } finally {
          over.abort()
        }
      }
      default:
        return request satisfies never
    }
  }
}
