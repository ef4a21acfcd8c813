import { jobListSchema, jobOutputSchema, jobQuerySchema, jobSchema } from '@tapetree/client/protocol'
import { systemClock } from '@tapetree/agent/run'
import { Jobs } from '@tapetree/agent/tools'
import type { z } from 'zod'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, Routes } from '../app.ts'
import { toWire } from '../bodies/wire-entry.ts'
import { json } from '../responses.ts'
import { endOf } from './events.ts'
import { jobParameters, readSession, sessionParameter } from './parameters.ts'

const defaultOutputBytes = 32 * 1024

/** Commands that the agent runs in the background. Their folders hold their state, so no session becomes live. */
export function addJobs(routes: Routes, { clock = systemClock, closing }: Pick<ApiParts, 'clock' | 'closing'>): void {
  const jobs = new Jobs()
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/jobs',
      operationId: 'listJobs',
      summary: 'List commands that run in the background, and those that ended recently',
      request: { params: sessionParameter },
      responses: { 200: json(jobListSchema, 'The newest first.') },
    },
    async (context) => {
      const folder = await folderOf(context.get('sessions'), context.req.valid('param').id)
      return context.json({ jobs: (await jobs.list(folder)).map(onWire<typeof jobSchema>) }, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/jobs/{job_id}',
      operationId: 'getJob',
      summary: 'Get the newest output of a background command, at once or when there is more',
      request: { params: jobParameters, query: jobQuerySchema },
      responses: { 200: json(jobOutputSchema, 'As plain text.') },
    },
    async (context) => {
      const { id, job_id: jobId } = context.req.valid('param')
      const { after, wait = 0, limit: limitBytes = defaultOutputBytes } = context.req.valid('query')
      const folder = await folderOf(context.get('sessions'), id)
      const over = new AbortController()
      const signal = AbortSignal.any([over.signal, endOf(context, closing)])
      const isWaiting = wait > 0 && after !== undefined
      if (isWaiting)
        void clock.wait(wait * 1000, signal).then(
          () => over.abort(),
          () => undefined,
        )
      try {
        const output = await jobs.read(jobId, folder, { limitBytes, ...(isWaiting && { after, signal }) })
        if (!output) throw unknownJob(jobId)
        const { text, ...others } = output
        return context.json(onWire<typeof jobOutputSchema>({ ...others, output: text }), 200)
      } finally {
        over.abort()
      }
    },
  )
  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions/{id}/jobs/{job_id}/stop',
      operationId: 'stopJob',
      summary: 'Stop a background command with all of its processes',
      request: { params: jobParameters },
      responses: { 200: json(jobSchema, 'It has ended.') },
    },
    async (context) => {
      const { id, job_id: jobId } = context.req.valid('param')
      const job = await jobs.stop(jobId, await folderOf(context.get('sessions'), id))
      if (!job) throw unknownJob(jobId)
      return context.json(onWire<typeof jobSchema>(job), 200)
    },
  )
}

function folderOf(sessions: ReachableSessions, sessionId: string): Promise<string | undefined> {
  return readSession(sessions, sessionId, ({ localFolder }) => localFolder)
}

function onWire<Schema extends z.ZodType>(value: unknown): z.output<Schema> {
  return toWire(value) as z.output<Schema>
}

function unknownJob(jobId: string): RequestProblem {
  return new RequestProblem(404, 'job-not-found', `There is no job ${jobId} in this session.`)
}
