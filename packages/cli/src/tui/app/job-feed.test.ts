import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { BackgroundJobs } from '../../session-source.ts'
import { remoteSource } from '../../host/remote-source.ts'
import { ScriptedHandle } from '../testing/scripted-handle.ts'
import { JobFeed } from './job-feed.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

type Read = NonNullable<Awaited<ReturnType<BackgroundJobs['read']>>>

const running: Read = {
  job: { id: 'job-1', command: 'make', startedAt: '', state: 'running', isRunning: true },
  text: 'one\n',
  isCut: false,
}

/** A feed that reads what the test says, with the times of the reads. */
function startFeed({ isRemote = false } = {}) {
  const session = { handle: new ScriptedHandle('first') }
  const reads: { sessionId: string; jobId: string; atMs: number }[] = []
  const startedAt = Date.now()
  const scene = {
    session,
    reads,
    answer: async (): Promise<Read | undefined> => running,
    times: (): number[] => reads.map(({ atMs }) => atMs),
  }
  const jobs: Pick<BackgroundJobs, 'isRemote' | 'read'> = {
    ...(isRemote && { isRemote }),
    read: (sessionId, jobId) => {
      reads.push({ sessionId, jobId, atMs: Date.now() - startedAt })
      return scene.answer()
    },
  }
  const feed = new JobFeed({ session, source: { jobs }, onChange: () => undefined })
  return { ...scene, scene, feed }
}

test('a failed request leaves the last news of a job, and the job is read again', async () => {
  const { feed, scene } = startFeed()
  feed.newsOf('job-1')
  await vi.advanceTimersByTimeAsync(0)
  scene.answer = async () => Promise.reject(new Error('The server does not answer.'))
  await vi.advanceTimersByTimeAsync(3000)
  expect(feed.newsOf('job-1')).toMatchObject({ state: 'running', isRunning: true, text: 'one\n' })
  scene.answer = async () => ({ ...running, job: { ...running.job, state: 'exit code 0', isRunning: false } })
  await vi.advanceTimersByTimeAsync(1000)
  expect(feed.newsOf('job-1')).toMatchObject({ state: 'exit code 0', isRunning: false })
})

test('a job whose first request failed is read again, and one that does not exist is gone', async () => {
  const { feed, scene, times } = startFeed()
  scene.answer = async () => Promise.reject(new Error('The server does not answer.'))
  feed.newsOf('job-1')
  await vi.advanceTimersByTimeAsync(0)
  expect(feed.newsOf('job-1')).toBeUndefined()
  scene.answer = async () => undefined
  await vi.advanceTimersByTimeAsync(60_000)
  expect([feed.newsOf('job-1'), times()]).toEqual([{ state: 'gone', isRunning: false, text: undefined }, [0, 1000]])
})

test('a session that is shown while a job of the one before is read has its own jobs read', async () => {
  const { feed, session, scene, reads } = startFeed()
  const slow = Promise.withResolvers<Read>()
  scene.answer = () => slow.promise
  feed.newsOf('job-1')
  session.handle = new ScriptedHandle('second')
  feed.newsOf('job-2')
  scene.answer = async () => ({ ...running, text: 'two\n' })
  slow.resolve(running)
  await vi.advanceTimersByTimeAsync(0)
  expect(feed.newsOf('job-2')).toMatchObject({ text: 'two\n' })
  await vi.advanceTimersByTimeAsync(1000)
  expect(reads.map(({ sessionId, jobId }) => `${sessionId} ${jobId}`)).toEqual([
    'first job-1',
    'second job-2',
    'second job-2',
  ])
})

test('jobs of a session that is no longer shown are not read', async () => {
  const { feed, session, times } = startFeed()
  feed.newsOf('job-1')
  session.handle = new ScriptedHandle('second')
  await vi.advanceTimersByTimeAsync(60_000)
  expect(times()).toEqual([0])
})

test('a server is asked less and less often while nothing changes, and at once for another job', async () => {
  const { feed, scene, times } = startFeed({ isRemote: true })
  feed.newsOf('job-1')
  await vi.advanceTimersByTimeAsync(36_000)
  expect(times()).toEqual([0, 1000, 3000, 7000, 15_000, 25_000, 35_000])
  scene.answer = async () => ({ ...running, text: 'one\ntwo\n' })
  await vi.advanceTimersByTimeAsync(11_000)
  expect(times().slice(7)).toEqual([45_000, 46_000])
  feed.newsOf('job-2')
  await vi.advanceTimersByTimeAsync(0)
  expect(times().slice(9)).toEqual([47_000, 47_000])
})

test('jobs of this machine are read each second', async () => {
  const { feed, times } = startFeed()
  feed.newsOf('job-1')
  await vi.advanceTimersByTimeAsync(5500)
  expect(times()).toEqual([0, 1000, 2000, 3000, 4000, 5000])
  feed.stop()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(times()).toHaveLength(6)
})

test('only a job that the server does not have is gone, and little output is requested', async () => {
  const urls: string[] = []
  let type = 'session-not-found'
  const fetch = async (url: string | URL | Request): Promise<Response> => {
    urls.push(String(url instanceof Request ? url.url : url))
    const problem = { type, title: 'Not found', status: 404 }
    return new Response(JSON.stringify(problem), {
      status: 404,
      headers: { 'content-type': 'application/problem+json' },
    })
  }
  const connect = (): never => {
    throw new Error('Nothing connects.')
  }
  const source = remoteSource({ address: { baseUrl: 'http://localhost', fetch, connect }, where: 'http://localhost' })
  const feed = new JobFeed({ session: { handle: new ScriptedHandle('first') }, source, onChange: () => undefined })
  feed.newsOf('job-1')
  await vi.advanceTimersByTimeAsync(500)
  expect(feed.newsOf('job-1')).toBeUndefined()
  type = 'job-not-found'
  await vi.advanceTimersByTimeAsync(1000)
  expect(feed.newsOf('job-1')).toMatchObject({ state: 'gone' })
  expect(urls).toHaveLength(2)
  expect(Number(new URL(urls[0] ?? '').searchParams.get('limit'))).toBeLessThanOrEqual(16 * 1024)
})
