import {
  createSessionSchema,
  deleteSessionQuerySchema,
  erasedSessionSchema,
  forkSchema,
  patchSessionSchema,
  promptResultSchema,
  sessionCreatedSchema,
  sessionDetailsSchema,
  sessionPageSchema,
  sessionQuerySchema,
  type Arguments,
  type ErasedSession,
  type Operation,
  type WirePromptResult,
} from '@tapetree/client/protocol'
import { Jobs } from '@tapetree/agent/tools'
import { SessionError, type Cause, type Session, type SessionQuery, type SessionStore } from '@tapetree/session'
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { z } from 'zod'
import type { LiveSession } from '../../live/live-session.ts'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import { refuseConfined } from '../../auth/operation-roles.ts'
import { findWorkspace, type WorkspaceSource } from '../../tool-hosts/tool-hosts.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import { identityOf, isEffectOf, isSame, type CommandIdentity } from '../../live/sent-command.ts'
import type { ApiParts, AppEnv, Routes } from '../app.ts'
import {
  clientOf,
  commandHeaders,
  commandIdOf,
  partsOf,
  perform,
  performAll,
  wasDone,
  resultOf,
  type CommandRequest,
} from '../command.ts'
import { json, jsonBody } from '../responses.ts'
import { folderInside, rootsFor } from '../bodies/list-files.ts'
import { readSession, releaseToMove, sessionParameter } from './parameters.ts'
import { detailsOf, summaryOf, type TaggedDetails } from '../bodies/session-body.ts'

const patchHeaders = commandHeaders.extend({ 'if-match': z.string().max(1000).optional() })

export function addSessions(routes: Routes, parts: ApiParts): void {
  const underWay: RequestsUnderWay = new Map()
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions',
      operationId: 'listSessions',
      summary: 'List sessions, newest first',
      request: { query: sessionQuerySchema },
      responses: { 200: json(sessionPageSchema, 'One page of sessions.') },
    },
    async (context) => {
      const all = context.get('sessions')
      const page = await all.store.list(queryOf(context.req.valid('query')))
      const live = new Map(all.opened.map((each) => [each.session.id, each]))
      const hosts = hostsOf(context, parts)
      const sessions = page.sessions.map((info) => summaryOf(info, { live: live.get(info.id), hosts }))
      const cursor = page.cursor === undefined ? {} : { cursor: Buffer.from(page.cursor).toString('base64url') }
      return context.json({ sessions, ...cursor }, 200)
    },
  )

  routes.add(
    'drive',
    {
      method: 'post',
      path: '/api/sessions',
      operationId: 'createSession',
      summary: 'Create a session, and optionally send a prompt',
      request: { headers: commandHeaders, body: jsonBody(createSessionSchema) },
      responses: { 201: json(sessionCreatedSchema, 'It was created.') },
    },
    async (context) => {
      const { prompt, ...wanted } = context.req.valid('json')
      const key = keyOfNew(context, { op: 'create', args: context.req.valid('json') })
      const { id, details, etag, outcome } = await shareAnswer(underWay, key, async () => {
        const sessions = context.get('sessions')
        using room = prompt === undefined ? undefined : await sessions.reserve()
        const made = await create(context, { wanted, parts, key })
        const said = prompt === undefined ? {} : { prompt: await promptNew(context, made, { text: prompt, room }) }
        return { id: made, outcome: said, ...(await readSession(sessions, made, detailsFor(context, parts))) }
      })
      // Relative, so that it is right behind a proxy with a path too.
      return context.json({ ...details, ...outcome }, 201, { location: `sessions/${id}`, etag })
    },
  )

  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}',
      operationId: 'getSession',
      summary: 'One session',
      request: { params: sessionParameter },
      responses: { 200: json(sessionDetailsSchema, 'With an ETag over its mutable properties.') },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const { details, etag } = await readSession(context.get('sessions'), id, detailsFor(context, parts))
      return context.json(details, 200, { etag })
    },
  )

  routes.add(
    'queue',
    {
      method: 'patch',
      path: '/api/sessions/{id}',
      operationId: 'updateSession',
      summary: 'Change name, model, thinking level or mode',
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
      responses: { 200: json(sessionDetailsSchema, 'Its new state.') },
    },
    async (context) => {
      const live = await context.get('sessions').get(context.req.valid('param').id)
      const ifMatch = context.req.valid('header')['if-match']
      const { details, etag } = await patch(context, live, {
        commands: patches(context.req.valid('json')),
        ifMatch,
        parts,
      })
      return context.json(details, 200, { etag })
    },
  )

  routes.add(
    'drive',
    {
      method: 'delete',
      path: '/api/sessions/{id}',
      operationId: 'deleteSession',
      summary: 'Move a session to the trash, or delete it for good, and stop its run',
      request: { params: sessionParameter, query: deleteSessionQuerySchema },
      responses: {
        200: json(erasedSessionSchema, 'It is deleted for good. Its forks still contain copies.'),
        204: { description: 'It is in the trash.' },
      },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const sessions = context.get('sessions')
      if (context.req.valid('query').erase === 'true') return context.json(await eraseSession(sessions, id), 200)
      // Only existing sessions are released, and only active ones are moved.
      await readSession(sessions, id, () => undefined)
      await releaseToMove(sessions, id)
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
      operationId: 'forkSession',
      summary: 'Copy the path to an entry, or all entries, to a new session',
      request: { params: sessionParameter, headers: commandHeaders, body: jsonBody(forkSchema) },
      responses: { 201: json(sessionDetailsSchema, 'The new session.') },
    },
    async (context) => {
      const { entry_id: entryId, name } = context.req.valid('json')
      const sessions = context.get('sessions')
      const { id: from } = context.req.valid('param')
      const key = keyOfNew(context, { op: 'fork', args: context.req.valid('json') })
      const { id, details, etag } = await shareAnswer(underWay, key, async () => {
        const made = await fork(context, { from, entryId, key })
        if (name !== undefined) await rename(context, made, name)
        sessions.changed(made)
        return { id: made, ...(await readSession(sessions, made, detailsFor(context, parts))) }
      })
      return context.json(details, 201, { location: `../${id}`, etag })
    },
  )
}

function hostsOf(context: Context<AppEnv>, { toolHosts }: ApiParts): WorkspaceSource | undefined {
  return toolHosts?.of(context.get('caller').tenant)
}

function detailsFor(
  context: Context<AppEnv>,
  parts: ApiParts,
): (session: Session, live: LiveSession | undefined) => Promise<TaggedDetails> {
  return (session, live) => detailsOf(session, live, hostsOf(context, parts))
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
  {
    wanted,
    parts,
    key,
  }: {
    wanted: Omit<z.infer<typeof createSessionSchema>, 'prompt'>
    parts: ApiParts
    key: NewSessionKey | undefined
  },
): Promise<string> {
  const { cwd, name, model, agent, parent_session: parentSession, workspace } = wanted
  const { tenant } = context.get('caller')
  if (workspace) refuseConfined(context.get('caller'))
  const place = workspace && findWorkspace(parts.toolHosts?.of(tenant), workspace)
  if (agent !== undefined && !(await parts.agents(tenant)).some(({ id }) => id === agent)) {
    throw new RequestProblem(422, 'unknown-agent', `The agent ${JSON.stringify(agent)} does not exist.`)
  }
  const roots = await rootsFor(context.get('caller'), parts)
  const wantedFolder = cwd ?? roots[0]
  const folder = wantedFolder === undefined ? undefined : await folderInside(wantedFolder, roots)
  return orEarlier(context, key, (keyed) =>
    context.get('sessions').create({
      ...keyed,
      ...(folder !== undefined && { cwd: folder }),
      ...(name !== undefined && { name }),
      ...(model && { model: { provider: model.provider, modelId: model.model_id } }),
      ...(agent !== undefined && { agent }),
      ...(parentSession !== undefined && { parentSession }),
      ...(place && { workspace: place }),
    }),
  )
}

async function promptNew(
  context: Context<AppEnv>,
  sessionId: string,
  { text, room }: { text: string; room: Disposable | undefined },
): Promise<WirePromptResult> {
  // Nothing may be awaited between the two: another request would take the room.
  room?.[Symbol.dispose]()
  const live = await context.get('sessions').get(sessionId)
  const done = await perform(context, live, { op: 'prompt', args: { text } })
  return resultOf(live.session, done, promptResultSchema)
}

/** The session that a request with an idempotency key creates: always the same id, with the request in its header. */
interface NewSessionKey {
  id: string
  identity: CommandIdentity
  cause: Cause
}

function keyOfNew(context: Context<AppEnv>, request: { op: string; args: unknown }): NewSessionKey | undefined {
  const cmd = commandIdOf(context, 'session')
  if (cmd === undefined) return undefined
  const { tenant, tokenId } = context.get('caller')
  const hash = createHash('sha256').update(JSON.stringify([tenant, context.req.path, cmd]))
  const identity = identityOf(request, { tokenId })
  const cause = { cmd, client: clientOf(context), ...identity }
  return { id: `k-${hash.digest('hex').slice(0, 40)}`, identity, cause }
}

type RequestsUnderWay = Map<string, { identity: CommandIdentity; answer: Promise<unknown> }>

/** Concurrent requests with one key run once and share the result. */
async function shareAnswer<T>(
  underWay: RequestsUnderWay,
  key: NewSessionKey | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!key) return work()
  const { id, identity } = key
  const other = underWay.get(id)
  if (other && !isSame(other.identity, identity)) throw keyReused()
  if (other) return other.answer as Promise<T>
  const answer = work().finally(() => underWay.delete(id))
  underWay.set(id, { identity, answer })
  return answer
}

/**
 * Creates a session, or finds the one that the same request created before, also before a restart or on another
 * server.
 */
async function orEarlier(
  context: Context<AppEnv>,
  key: NewSessionKey | undefined,
  make: (keyed: Partial<Pick<NewSessionKey, 'id' | 'cause'>>) => Promise<string>,
): Promise<string> {
  const makeNew: typeof make = async (keyed) => {
    await context.get('limits')?.checkNewSession()
    return make(keyed)
  }
  if (!key) return makeNew({})
  const { id, cause, identity } = key
  try {
    return await makeNew({ id, cause })
  } catch (error) {
    // At a limit, the same request may still have created its session before.
    const isAtLimit = error instanceof RequestProblem && error.problem['limit'] !== undefined
    if (!isAtLimit && !(error instanceof SessionError && error.code === 'session-exists')) throw error
    const isOurs = await readSession(context.get('sessions'), id, (session) => isEffectOf(session, 1, identity)).catch(
      (unreadable: unknown) => {
        throw isAtLimit ? error : unreadable
      },
    )
    if (!isOurs) throw keyReused()
    return id
  }
}

function keyReused(): RequestProblem {
  const detail = 'This idempotency key was used before for another request. Use a new one.'
  return new RequestProblem(422, 'key-reused', detail)
}

/** A repeated request completes what was cut off the first time. */
function fork(
  context: Context<AppEnv>,
  { from, entryId, key }: { from: string; entryId: string | undefined; key: NewSessionKey | undefined },
): Promise<string> {
  return readSession(context.get('sessions'), from, async (session) => {
    let isNew = false
    const id = await orEarlier(context, key, async (keyed) => {
      const made = await (entryId === undefined
        ? session.copyAll(keyed)
        : session.createBranchedSession(entryId, keyed))
      isNew = true
      return made
    })
    if (!isNew) await session.completeCopy(id, entryId)
    return id
  })
}

async function rename(context: Context<AppEnv>, sessionId: string, name: string): Promise<void> {
  const { store } = context.get('sessions')
  await using session = await store.open(sessionId)
  const cmd = commandIdOf(context)
  const cause = cmd === undefined ? {} : { cause: { cmd, client: clientOf(context) } }
  // A repeated request must not undo a later change of the name.
  if (!wasDone(context, session)) await session.appendSessionInfo(name, cause)
}

type Patch = z.infer<typeof patchSessionSchema>

function patches({ name, model, thinking_level: level, mode }: Patch): CommandRequest[] {
  return partsOf([
    ...(name === undefined ? [] : [part('rename', { name: name ?? '' })]),
    ...(model === undefined ? [] : [part('set_model', model)]),
    ...(level === undefined ? [] : [part('set_thinking_level', { level })]),
    ...(mode === undefined ? [] : [part('set_config', { mode })]),
  ])
}

function part<Op extends Operation>(op: Op, args: Arguments<Op>): Pick<CommandRequest, 'op' | 'args'> {
  return { op, args }
}

async function patch(
  context: Context<AppEnv>,
  live: LiveSession,
  { commands, ifMatch, parts }: { commands: CommandRequest[]; ifMatch: string | undefined; parts: ApiParts },
): Promise<TaggedDetails> {
  const currentTag = async (): Promise<string> => (await detailsOf(live.session, live, undefined)).etag
  await performAll(context, live, { commands, ifMatch, currentTag })
  return detailsFor(context, parts)(live.session, live)
}

/** Works in any place. Background commands of the session are stopped, unless another process writes it. */
async function eraseSession(sessions: ReachableSessions, id: string): Promise<ErasedSession> {
  await releaseToMove(sessions, id)
  const folder = await folderToErase(sessions.store, id)
  if (folder !== undefined) await new Jobs().stopAll(folder)
  const { forks } = await sessions.store.erase(id)
  sessions.changed(id)
  return { id, forks }
}

/** The local folder of a session in any place; undefined if it has none, or another process writes it. */
async function folderToErase(store: SessionStore, id: string): Promise<string | undefined> {
  await using session = await store.open(id).catch(unlessNotFound)
  if (session) return session.owner ? undefined : session.localFolder
  // Only active sessions can be opened by id.
  for (const place of ['archive', 'trash'] as const) {
    const { sessions } = await store.list({ place, limit: Infinity })
    const found = sessions.find((row) => row.id === id)
    if (found) return found.path
  }
  return undefined
}

function unlessNotFound(error: unknown): undefined {
  if (error instanceof SessionError && error.code === 'session-not-found') return undefined
  throw error
}
