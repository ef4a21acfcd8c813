import type { BackgroundJobs } from '../../session-source.ts'
import { Ticker } from '../chat/activities.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { JobNews } from '../views/item-context.ts'

export interface JobFeedOptions {
  session: Pick<CurrentSession, 'handle'>
  source: { readonly jobs: Pick<BackgroundJobs, 'read'> }
  onChange: () => void
}

/** Jobs that are followed at once. Of others, the last known state is shown. */
const followed = 8

/** The state and newest output of background jobs in the conversation. Reads a job when it is first drawn, and each second while it runs. */
export class JobFeed {
  readonly #options: JobFeedOptions
  readonly #ticker = new Ticker(() => void this.#read())
  readonly #jobs = new Map<string, JobNews | undefined>()
  #sessionId: string | undefined
  #isReading = false
  #isOver = false

  constructor(options: JobFeedOptions) {
    this.#options = options
  }

  /** As far as it is known; `onChange` is called when more is. */
  newsOf(jobId: string): JobNews | undefined {
    const { handle } = this.#options.session
    if (handle?.sessionId !== this.#sessionId) {
      this.#sessionId = handle?.sessionId
      this.#jobs.clear()
    }
    if (!this.#jobs.has(jobId)) {
      this.#jobs.set(jobId, undefined)
      void this.#read()
    }
    return this.#jobs.get(jobId)
  }

  stop(): void {
    this.#isOver = true
    this.#ticker.stop()
  }

  async #read(): Promise<void> {
    const sessionId = this.#sessionId
    if (sessionId === undefined || this.#isReading || this.#isOver) return
    this.#isReading = true
    const open = [...this.#jobs].filter(([, news]) => news?.isRunning ?? true).slice(-followed)
    const read = await Promise.all(open.map(async ([id]) => [id, await this.#newsNow(sessionId, id)] as const))
    this.#isReading = false
    if (sessionId !== this.#sessionId || this.#isOver) return
    let isChanged = false
    for (const [id, news] of read) {
      const before = this.#jobs.get(id)
      if (!news || (before?.state === news.state && before.text === news.text)) continue
      this.#jobs.set(id, news)
      isChanged = true
    }
    const isOpen = [...this.#jobs.values()].some((news) => news?.isRunning ?? true)
    this.#ticker.run(isOpen)
    if (isChanged) this.#options.onChange()
  }

  /** A job that cannot be read is shown as the call reported it. */
  async #newsNow(sessionId: string, jobId: string): Promise<JobNews | undefined> {
    try {
      const output = await this.#options.source.jobs.read(sessionId, jobId)
      if (!output) return { state: 'gone', isRunning: false, text: undefined }
      const { job, text } = output
      return { state: job.state, isRunning: job.isRunning, text }
    } catch {
      return { state: 'unknown', isRunning: false, text: undefined }
    }
  }
}
