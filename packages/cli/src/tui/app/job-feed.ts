import type { BackgroundJobs } from '../../session-source.ts'
import type { CurrentSession } from '../chat/current-session.ts'
import type { JobNews } from '../views/item-context.ts'

export interface JobFeedOptions {
  session: Pick<CurrentSession, 'handle'>
  source: { readonly jobs: Pick<BackgroundJobs, 'isRemote' | 'read'> }
  onChange: () => void
}

/** Jobs that are followed at once. Of others, the last known state is shown. */
const followed = 8
const shortestPauseMs = 1000
/** A server is asked less and less often while nothing changes. */
const longestPauseMs = 10_000

/** The state and newest output of background jobs in the conversation. Reads a job when it is first drawn, and repeatedly while it runs. */
export class JobFeed {
  readonly #options: JobFeedOptions
  readonly #jobs = new Map<string, JobNews | undefined>()
  #sessionId: string | undefined
  #timer: NodeJS.Timeout | undefined
  #pauseMs = shortestPauseMs
  #isReading = false
  /** A job was drawn for the first time during a read. */
  #hasNew = false
  #isOver = false

  constructor(options: JobFeedOptions) {
    this.#options = options
  }

  /** As far as it is known; `onChange` is called when more is. */
  newsOf(jobId: string): JobNews | undefined {
    this.#followSession()
    if (!this.#jobs.has(jobId)) {
      this.#jobs.set(jobId, undefined)
      this.#hasNew = true
      void this.#read()
    }
    return this.#jobs.get(jobId)
  }

  stop(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  /** Jobs of a session that is no longer shown are not read. */
  #followSession(): void {
    const sessionId = this.#options.session.handle?.sessionId
    if (sessionId !== this.#sessionId) this.#jobs.clear()
    this.#sessionId = sessionId
  }

  async #read(): Promise<void> {
    if (this.#isReading) return
    this.#isReading = true
    clearTimeout(this.#timer)
    let isChanged = this.#hasNew
    do {
      this.#hasNew = false
      if (await this.#readOpen()) isChanged = true
    } while (this.#hasNew)
    this.#isReading = false
    this.#readLater({ isChanged })
  }

  #readLater({ isChanged }: { isChanged: boolean }): void {
    const isSlower = this.#options.source.jobs.isRemote === true && !isChanged
    this.#pauseMs = isSlower ? Math.min(this.#pauseMs * 2, longestPauseMs) : shortestPauseMs
    if (this.#isOver || this.#openJobs().length === 0) return
    this.#timer = setTimeout(() => void this.#read(), this.#pauseMs)
    this.#timer.unref()
  }

  #openJobs(): string[] {
    return [...this.#jobs].filter(([, news]) => news?.isRunning ?? true).map(([id]) => id)
  }

  /** Whether anything has changed. */
  async #readOpen(): Promise<boolean> {
    this.#followSession()
    const sessionId = this.#sessionId
    if (sessionId === undefined || this.#isOver) return false
    const open = this.#openJobs().slice(-followed)
    const read = await Promise.all(open.map(async (id) => [id, await this.#newsNow(sessionId, id)] as const))
    if (sessionId !== this.#sessionId || this.#isOver) return false
    const changed = read.filter(([id, news]) => news && !isSame(news, this.#jobs.get(id)))
    for (const [id, news] of changed) this.#jobs.set(id, news)
    if (changed.length > 0) this.#options.onChange()
    return changed.length > 0
  }

  /** Undefined if it cannot be read now. A job that does not exist is shown as the call reported it. */
  async #newsNow(sessionId: string, jobId: string): Promise<JobNews | undefined> {
    try {
      const output = await this.#options.source.jobs.read(sessionId, jobId)
      if (!output) return { state: 'gone', isRunning: false, text: undefined }
      const { job, text, isCut } = output
      return { state: job.state, isRunning: job.isRunning, text, isCut }
    } catch {
      return undefined // it is read again
    }
  }
}

function isSame(one: JobNews, other: JobNews | undefined): boolean {
  return one.state === other?.state && one.text === other.text
}
