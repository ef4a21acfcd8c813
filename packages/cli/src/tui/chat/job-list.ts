import type { BackgroundJob, JobOutput, SessionSource } from '../../session-source.ts'
import { ageOf, counted } from '../../text/amounts.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks } from './remarks.ts'
import type { Ask, Question } from './rewinding.ts'

export interface JobListOptions {
  source: Pick<SessionSource, 'jobs'>
  session: CurrentSession
  remarks: Remarks
  activities: Activities
  ask: Ask
  now: () => number
}

/** More does not fit on a screen together with the choices. */
const shownLines = 30

/** Shows the background commands of the session with their output. A running one can be stopped. */
export class JobList {
  readonly #options: JobListOptions

  constructor(options: JobListOptions) {
    this.#options = options
  }

  async show(): Promise<void> {
    const { session, remarks } = this.#options
    const id = session.handle?.sessionId
    if (id === undefined) return remarks.warn('There is no session yet.')
    try {
      await this.#show(id)
    } catch (error) {
      remarks.fail(error)
    }
  }

  async #show(sessionId: string): Promise<void> {
    const { source, session, remarks, activities, ask, now } = this.#options
    const isShown = (): boolean => session.handle?.sessionId === sessionId
    const jobs = await activities.track('Reading jobs', source.jobs.list(sessionId))
    if (!isShown()) return
    if (jobs.length === 0) return remarks.say('This session has no background jobs.')
    const chosen = jobs.length === 1 ? jobs[0] : await ask(jobsQuestion(jobs, now()))
    if (!chosen) return
    for (;;) {
      const output = await activities.track('Reading output', source.jobs.read(sessionId, chosen.id))
      if (!isShown()) return
      if (!output) return remarks.warn('The job is gone.')
      const answer = await ask(jobQuestion(output))
      if (answer === 'stop') await activities.track('Stopping the job', source.jobs.stop(sessionId, chosen.id))
      else if (answer !== 'again') return
    }
  }
}

function jobsQuestion(jobs: readonly BackgroundJob[], now: number): Question<BackgroundJob> {
  return {
    title: 'Background jobs',
    intro: [],
    choices: jobs.map((job) => ({
      value: job,
      label: harmlessLine(job.command || job.id),
      detail: `${job.state}, ${ageOf(job.startedAt, now)}`,
    })),
  }
}

function jobQuestion({ job, text, isCut }: JobOutput): Question<'stop' | 'again' | 'close'> {
  const lines = harmless(text).trimEnd().split('\n')
  const shown = lines.slice(-shownLines)
  const hidden = lines.length - shown.length
  const earlier = isCut ? 'earlier lines' : counted(hidden, 'earlier line')
  return {
    title: `${harmlessLine(job.command || job.id)}: ${job.state}`,
    intro: [...(hidden > 0 || isCut ? [`… ${earlier}`] : []), ...shown, ''],
    choices: [
      { value: 'close' as const, label: 'Close' },
      ...(job.isRunning
        ? [
            { value: 'again' as const, label: 'Read again' },
            { value: 'stop' as const, label: 'Stop it', detail: 'the agent is told' },
          ]
        : []),
    ],
  }
}
