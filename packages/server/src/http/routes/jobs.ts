import { jobListSchema, jobOutputSchema, jobQuerySchema, jobSchema } from '@tapetree/client/protocol'
import { systemClock } from '@tapetree/agent/run'
import { HostUnavailable, RemoteJobs } from '@tapetree/agent/tool-host'
import { Jobs } from '@tapetree/agent/tools'
import type { Context } from 'hono'
import type { z } from 'zod'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, AppEnv, Routes } from '../app.ts'
import { toWire } from '../bodies/wire-entry.ts'
import { json } from '../responses.ts'
import { endOf } from './events.ts'
import { jobParameters, readSession, sessionParameter } from './parameters.ts'

const defaultOutputBytes = 32 * 1024

/**
 * Commands that the agent runs in the background. Their folders hold their state, so no session becomes live. A session
 * that works on a tool host has its jobs there, and here those from before.
 */
export function addJobs(
  routes: Routes,
  { clock = systemClock, closing, toolHosts }: Pick<ApiParts, 'clock' | 'closing' | 'toolHosts'>,
): void {
  const jobs = new Jobs()
  const placeOf = async (context: Context<AppEnv>, sessionId: string): Promise<JobPlace> =>
    readSession(context.get('sessions'), sessionId, ({ localFolder: folder, workspace }) => {
      const channel = workspace && toolHosts?.channel(context.get('caller').tenant, workspace.hostId)
      return { folder, host: channel && new RemoteJobs(channel, sessionId) }
    })
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
      const { folder, host } = await placeOf(context, context.req.valid('param').id)
      const there = host ? await reached(host.list()) : []
      const all = [...(await jobs.list(folder)), ...there]
      all.sort((left, right) => Date.parse(right.startedAt) - Date.parse(left.startedAt))
      return context.json({ jobs: all.map(onWire<typeof jobSchema>) }, 200)
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
      const { folder, host } = await placeOf(context, id)
      const over = new AbortController()
      const signal = AbortSignal.any([over.signal, endOf(context, closing)])
      const isWaiting = wait > 0 && after !== undefined
      if (isWaiting)
        void clock.wait(wait * 1000, signal).then(
          () => over.abort(),
          () => undefined,
        )
      try {
        const wanted = { limitBytes, ...(isWaiting && { after }), signal }
        const output =
          (await jobs.read(jobId, folder, wanted)) ??
          (host && (await reached(host.read(jobId, { ...wanted, waitMs: wait * 1000 }))))
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
      const { folder, host } = await placeOf(context, id)
      const job = (await jobs.stop(jobId, folder)) ?? (host && (await reached(host.stop(jobId))))
      if (!job) throw unknownJob(jobId)
      return context.json(onWire<typeof jobSchema>(job), 200)
    },
  )
}

interface JobPlace {
  folder: string | undefined
  /** Absent if the session works on this machine. */
  host: RemoteJobs | undefined
}

async function reached<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof HostUnavailable) throw new RequestProblem(503, 'tool-host-unavailable', error.message)
    throw error
  }
}

function onWire<Schema extends z.ZodType>(value: unknown): z.output<Schema> {
  return toWire(value) as z.output<Schema>
}

function unknownJob(jobId: string): RequestProblem {
  return new RequestProblem(404, 'job-not-found', `There is no job ${jobId} in this session.`)
}
