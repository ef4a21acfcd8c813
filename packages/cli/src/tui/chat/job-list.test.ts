import { expect, test } from 'vitest'
import { backgroundJob, type BackgroundJob } from '../../session-source.ts'
import { ScriptedSource } from '../testing/scripted-source.ts'
import { Activities } from './activities.ts'
import { CurrentSession } from './current-session.ts'
import { JobList } from './job-list.ts'
import { Remarks } from './remarks.ts'
import type { Question } from './rewinding.ts'

interface Stage {
  jobs: JobList
  source: ScriptedSource
  session: CurrentSession
  /** The titles of questions, and the lines below. */
  asked: string[]
}

async function startJobs(): Promise<Stage> {
  const source = new ScriptedSource()
  const session = new CurrentSession(() => undefined)
  await session.show(source.opened('first'))
  const asked: string[] = []
  const ask = async <Value>({ title, intro }: Question<Value>): Promise<Value | undefined> => {
    asked.push(title, ...intro)
    return undefined
  }
  const now = (): number => 0
  const onChange = (): void => undefined
  const activities = new Activities({ now, onChange })
  const remarks = new Remarks(onChange)
  return { jobs: new JobList({ source, session, remarks, activities, ask, now }), source, session, asked }
}

test('jobs of a session that is no longer shown are not shown', async () => {
  const { jobs, source, session, asked } = await startJobs()
  source.running.set('make', '')
  const list = Promise.withResolvers<BackgroundJob[]>()
  const [job] = await source.jobs.list('first')
  source.jobs.list = () => list.promise
  const shown = jobs.show()
  await session.show(source.opened('second'))
  list.resolve(job ? [job] : [])
  await shown
  expect(asked).toEqual([])
})

test('output of a session that is no longer shown is not shown', async () => {
  const { jobs, source, session, asked } = await startJobs()
  source.running.set('make', '')
  const read = source.jobs.read.bind(source.jobs)
  source.jobs.read = async (...args) => {
    await session.show(source.opened('second'))
    return read(...args)
  }
  await jobs.show()
  expect(asked).toEqual([])
})

test('output whose beginning was not read says that there is more', async () => {
  const { jobs, source, asked } = await startJobs()
  source.running.set('make', 'one\ntwo\n')
  await jobs.show()
  const read = source.jobs.read.bind(source.jobs)
  source.jobs.read = async (...args) => {
    const output = await read(...args)
    return output && { ...output, isCut: true }
  }
  await jobs.show()
  expect(asked).toEqual(['make: running', 'one', 'two', '', 'make: running', '… earlier lines', 'one', 'two', ''])
})

test('how a job has ended is harmless for a terminal', () => {
  const exit = { cause: 'exited', code: null, signal: 'SIG\u001b]52;c;eA==\u0007KILL\nx' }
  const job = backgroundJob({ id: 'job-1', command: 'make', startedAt: '', status: 'ended', exit })
  // oxlint-disable-next-line no-control-regex
  expect(job.state).not.toMatch(/[\u0000-\u001f]/)
  expect(job.state).toMatch(/^ended by SIG.*KILL x$/)
})
