import {
  createSessionSchema,
  forkSchema,
  patchSessionSchema,
  promptOutcomeSchema,
  sessionDetailsSchema,
  sessionPageSchema,
  sessionQuerySchema,
  type Arguments,
  type Operation,
  type PromptOutcome,
} from '@tapetree/client'
import { SessionError, type SessionQuery } from '@tapetree/session'
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { z } from 'zod'
import type { LiveSession } from '../../live/live-session.ts'
import { ProblemError } from '../../live/problem-error.ts'
import type { ApiParts } from '../api-parts.ts'
import type { AppEnv, Routes } from '../app.ts'
import { clientOf, commandHeaders, perform, type CommandRequest } from '../command.ts'
import { resultOf } from '../effect.ts'
import { changedMeanwhile, namesTag } from '../etag.ts'
import { folderInside } from '../files-inside.ts'
import { readSession } from '../read-session.ts'
import { json, jsonBody } from '../responses.ts'
import { detailsOf, summaryOf, type TaggedDetails } from '../session-body.ts'
import { sessionParameter } from './parameters.ts'

const createdSchema = sessionDetailsSchema.extend({ prompt: promptOutcomeSchema.optional() })
const patchHeaders = commandHeaders.extend({ 'if-match': z.string().max(1000).optional() })

export function addSessions(routes: Routes, parts: ApiParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions',
      summary: 'Sessions, newest first',
      request: { query: sessionQuerySchema },
      responses: { 200: json(sessionPageSchema, 'One page of them.') },
    },
    async (context) => {
      const page = await context.get('sessions').store.list(queryOf(context.req.valid('query')))
      const cursor = page.cursor === undefined ? {} : { cursor: Buffer.from(page.cursor).toString('base64url') }
      return context.json({ sessions: page.sessions.map(summaryOf), ...cursor }, 200)
    },
  )

  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions',
      summary: 'Makes a session, and prompts it where a prompt is given',
      request: { headers: commandHeaders, body: jsonBody(createSessionSchema) },
      responses: { 201: json(createdSchema, 'It is there.') },
    },
    async (context) => {
      const { prompt, ...wanted } = context.req.valid('json')
      const id = await create(context, wanted, parts)
      const outcome = prompt === undefined ? {} : { prompt: await promptNew(context, id, prompt) }
      const { details, etag } = await readSession(context.get('sessions'), id, detailsOf)
      return context.json({ ...details, ...outcome }, 201, { location: `/api/sessions/${id}`, etag })
    },
  )

  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}',
      summary: 'One session',
      request: { params: sessionParameter },
      responses: { 200: json(sessionDetailsSchema, 'With an ETag over what can be changed.') },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const { details, etag } = await readSession(context.get('sessions'), id, detailsOf)
      return context.json(details, 200, { etag })
    },
  )

  routes.add(
    'queue',
    {
      method: 'patch',
      path: '/api/sessions/{id}',
      summary: 'Changes name, model, thinking level or mode',
      request: {
        params: sessionParameter,
        headers: patchHeaders,
        body: {
          required: true as const,
          content: {
            'application/json': { schema: patchSessionSchema },
            'application/merge-patch+json': { schema: patchSessionSchema },
          },
        },
      },
      responses: { 200: json(sessionDetailsSchema, 'As it is now.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const ifMatch = context.req.valid('header')['if-match']
      const { details, etag } = await patch(context, live, { commands: patches(context.req.valid('json')), ifMatch })
      return context.json(details, 200, { etag })
    },
  )

  routes.add(
    'drive',
    {
      method: 'delete',
      path: '/api/sessions/{id}',
      summary: 'Moves a session to the trash; what runs in it is stopped',
      request: { params: sessionParameter },
      responses: { 204: { description: 'It is there.' } },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const sessions = context.get('sessions')
      // Only what is there is let go of, and only what is active is moved.
      await readSession(sessions, id, () => undefined)
      await sessions.release(id)
      await sessions.store.delete(id)
      sessions.changed(id)
      return context.body(null, 204)
    },
  )

  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions/{id}/fork',
      summary: 'A new session with the path to an entry, or with all entries',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(forkSchema) },
      responses: { 201: json(sessionDetailsSchema, 'The new session.') },
    },
    async (context) => {
      const { entry_id: entryId, name } = context.req.valid('json')
      const sessions = context.get('sessions')
      const id = await fork(context, context.req.valid('param').id, entryId)
      if (name !== undefined) await rename(context, id, name)
      sessions.changed(id)
      const { details, etag } = await readSession(sessions, id, detailsOf)
      return context.json(details, 201, { location: `/api/sessions/${id}`, etag })
    },
  )
}

function queryOf({ limit, cursor, cwd, status, q, place }: z.infer<typeof sessionQuerySchema>): SessionQuery {
  return {
    limit: limit ?? 50,
    ...(cursor !== undefined && { cursor: Buffer.from(cursor, 'base64url').toString() }),
    ...(cwd !== undefined && { cwd }),
    ...(status !== undefined && { status }),
    ...(q !== undefined && { text: q }),
    ...(place !== undefined && { place }),
  }
}

async function create(
  context: Context<AppEnv>,
  wanted: Omit<z.infer<typeof createSessionSchema>, 'prompt'>,
  parts: ApiParts,
): Promise<string> {
  const { cwd, name, model, agent, parent_session: parentSession } = wanted
  const { tenant } = context.get('caller')
  if (agent !== undefined && !(await parts.agents(tenant)).some(({ id }) => id === agent)) {
    throw new ProblemError(422, 'unknown-agent', `There is no agent ${JSON.stringify(agent)}.`)
  }
  const folder = await folderInside(cwd, parts.roots(tenant))
  return orEarlier(keyedId(context), (id) =>
    context.get('sessions').create({
      ...id,
      cwd: folder,
      ...(name !== undefined && { name }),
      ...(model && { model: { provider: model.provider, modelId: model.model_id } }),
      ...(agent !== undefined && { agent }),
      ...(parentSession !== undefined && { parentSession }),
    }),
  )
}

async function promptNew(context: Context<AppEnv>, sessionId: string, text: string): Promise<PromptOutcome> {
  const live = await context.get('sessions').get(sessionId)
  const done = await perform(context, live, { op: 'prompt', args: { text } })
  return resultOf(live.session, done, promptOutcomeSchema)
}

/** A request that is sent again makes the same id, and so finds what the first one made: the store is its memory. */
function keyedId(context: Context<AppEnv>): { id?: string } {
  const key = context.req.header('idempotency-key')
  if (key === undefined) return {}
  const { tenant } = context.get('caller')
  const hash = createHash('sha256').update(JSON.stringify([tenant, context.req.path, key]))
  return { id: `k-${hash.digest('hex').slice(0, 40)}` }
}

async function orEarlier(keyed: { id?: string }, make: (keyed: { id?: string }) => Promise<string>): Promise<string> {
  try {
    return await make(keyed)
  } catch (error) {
    if (keyed.id !== undefined && error instanceof SessionError && error.code === 'session-exists') return keyed.id
    throw error
  }
}

function fork(context: Context<AppEnv>, sessionId: string, entryId: string | undefined): Promise<string> {
  return readSession(context.get('sessions'), sessionId, (session) =>
    orEarlier(keyedId(context), (id) =>
      entryId === undefined ? session.copyAll(id) : session.createBranchedSession(entryId, id),
    ),
  )
}

async function rename(context: Context<AppEnv>, sessionId: string, name: string): Promise<void> {
  const { store } = context.get('sessions')
  await using session = await store.open(sessionId)
  const cmd = context.req.header('idempotency-key')
  const cause = cmd === undefined ? {} : { cause: { cmd, client: clientOf(context) } }
  if (session.name !== name) await session.appendSessionInfo(name, cause)
}

type Patch = z.infer<typeof patchSessionSchema>

function patches({ name, model, thinking_level: level, mode }: Patch): CommandRequest[] {
  return [
    ...(name === undefined ? [] : [part('rename', { name: name ?? '' })]),
    ...(model === undefined ? [] : [part('set_model', model)]),
    ...(level === undefined ? [] : [part('set_thinking_level', { level })]),
    ...(mode === undefined ? [] : [part('set_config', { mode })]),
  ]
}

function part<Op extends Operation>(op: Op, args: Arguments<Op>): CommandRequest {
  return { op, args, part: op }
}

async function patch(
  context: Context<AppEnv>,
  live: LiveSession,
  { commands, ifMatch }: { commands: CommandRequest[]; ifMatch: string | undefined },
): Promise<TaggedDetails> {
  const [first, ...rest] = commands
  if (first) await performIfMatch(context, live, { command: first, ifMatch })
  for (const command of rest) await perform(context, live, command)
  return detailsOf(live.session, live)
}

/** The tag is taken of one state of the log, and the command is refused where that is not the last one any more. */
async function performIfMatch(
  context: Context<AppEnv>,
  live: LiveSession,
  { command, ifMatch }: { command: CommandRequest; ifMatch: string | undefined },
): Promise<void> {
  if (ifMatch === undefined) return void (await perform(context, live, command))
  const key = context.req.header('idempotency-key')
  // It took effect already: what it was to match has changed by that very effect.
  if (key !== undefined && live.session.effectOf(`${key}.${command.part ?? ''}`) !== undefined) return
  for (;;) {
    const { seq } = live.session.head
    const { etag } = await detailsOf(live.session, live)
    if (!namesTag(ifMatch, etag)) throw changedMeanwhile(etag)
    try {
      return void (await perform(context, live, { ...command, ifHead: seq }))
    } catch (error) {
      if (!(error instanceof ProblemError && error.problem.type === 'head-moved')) throw error
    }
  }
}
