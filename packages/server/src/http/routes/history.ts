import {
  comparisonQuerySchema,
  comparisonSchema,
  contextQuerySchema,
  contextSchema,
  entryRequestSchema,
  entryWindowQuerySchema,
  entryWindowSchema,
  eventSchema,
  playbackTypeSchema,
  playerPageSchema,
  playerQuerySchema,
  searchQuerySchema,
  searchResultSchema,
  treeQuerySchema,
  treeWindowSchema,
} from '@tapetree/client/protocol'
import { compareSession } from '@tapetree/agent/workspace'
import type { Context, ContextMessage, SearchQuery, Session, SessionStore } from '@tapetree/session'
import type { Player, PlayerPosition, PlaybackEventType } from '@tapetree/session/view'
import { z } from 'zod'
import { mayDo } from '../../auth/operation-roles.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts, Routes } from '../app.ts'
import { entryWindow } from '../bodies/entry-window.ts'
import { treeWindow } from '../bodies/tree-window.ts'
import { readSession, entryParameters, sessionParameter } from './parameters.ts'
import { json } from '../responses.ts'
import { toWire, entryOnWire, messageOnWire } from '../bodies/wire-entry.ts'
import { endOf } from './events.ts'
import type { Model } from '@tapetree/agent'
import { systemClock, checkRequest, type Clock, type RequestCheck } from '@tapetree/agent/run'

type HistoryParts = Pick<ApiParts, 'openModel' | 'snapshotsFolder' | 'closing' | 'clock'>

/** Routes that read the past of a session. */
export function addHistory(routes: Routes, { openModel, snapshotsFolder, closing, clock }: HistoryParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/tree',
      operationId: 'getTree',
      summary: 'List entries with their parents, one window at a time',
      request: { params: sessionParameter, query: treeQuerySchema },
      responses: { 200: json(treeWindowSchema, 'In the order of the log.') },
    },
    async (context) => {
      const query = context.req.valid('query')
      const { id } = context.req.valid('param')
      return context.json(await readSession(context.get('sessions'), id, (session) => treeWindow(session, query)), 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/compare',
      operationId: 'compareLeaves',
      summary: 'Compare two entries: common ancestor, messages, cost, time, checks and files of each side',
      request: { params: sessionParameter, query: comparisonQuerySchema },
      responses: { 200: json(comparisonSchema, 'Both sides.') },
    },
    async (context) => {
      const { left, right, diff, path } = context.req.valid('query')
      const { id } = context.req.valid('param')
      const { role, tenant } = context.get('caller')
      const storesFolder = mayDo(role, 'drive') ? snapshotsFolder?.(tenant) : undefined
      const comparison = await readSession(context.get('sessions'), id, (session) => {
        const folder = session.header?.cwd
        const patches = diff === 'true' && { diff: path === undefined ? {} : { path } }
        const files = storesFolder !== undefined &&
          folder !== undefined && { files: { folder, storesFolder, ...patches } }
        return compareSession(session, { left, right, ...files })
      })
      return context.json(toWire(comparison) as z.infer<typeof comparisonSchema>, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/context',
      operationId: 'getContext',
      summary: 'Get the context of the model at an entry, with the reason for each part',
      request: { params: sessionParameter, query: contextQuerySchema },
      responses: { 200: json(contextSchema, 'Each message with its entry and its reason.') },
    },
    async (context) => {
      const { entry_id: entryId } = context.req.valid('query')
      const { id } = context.req.valid('param')
      const body = await readSession(context.get('sessions'), id, async (session) => {
        const leafId = entryId ?? session.leafId
        return contextOnWire(leafId, await session.getContext({ leafId }))
      })
      return context.json(body, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/entries',
      operationId: 'listEntries',
      summary: 'Get the entries around a line or an entry, as in the log',
      request: { params: sessionParameter, query: entryWindowQuerySchema },
      responses: { 200: json(entryWindowSchema, 'In the order of the log.') },
    },
    async (context) => {
      const query = context.req.valid('query')
      const { id } = context.req.valid('param')
      const body = await readSession(context.get('sessions'), id, (session) => entryWindow(session, query))
      // Not reserialized: a line has the same bytes on every endpoint.
      return context.body(body, 200, { 'content-type': 'application/json' }) as never
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/entries/{entry_id}',
      operationId: 'getEntry',
      summary: 'Get one complete entry',
      request: { params: entryParameters },
      responses: { 200: json(eventSchema, 'As in the log, with large values restored from blobs.') },
    },
    async (context) => {
      const { id, entry_id: entryId } = context.req.valid('param')
      const entry = await readSession(context.get('sessions'), id, (session) => session.getEntry(entryId))
      return context.json(entryOnWire(entry) as z.infer<typeof eventSchema>, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/entries/{entry_id}/request',
      operationId: 'getEntryRequest',
      summary: 'Get the request that led to an answer',
      request: { params: entryParameters },
      responses: {
        200: json(
          entryRequestSchema,
          'The recorded request, the one rebuilt from the log, and whether they are the same.',
        ),
      },
    },
    async (context) => {
      const { id, entry_id: entryId } = context.req.valid('param')
      const { tenant } = context.get('caller')
      const open: OpenModel = async (model) => openModel?.(tenant, model)
      const body = await readSession(context.get('sessions'), id, (session) => requestOf(session, entryId, open))
      return context.json(body, 200)
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/player',
      operationId: 'playSession',
      summary: 'Play back the recorded session, event by event',
      request: { params: sessionParameter, query: playerQuerySchema },
      responses: {
        200: {
          description: 'One page of events; or as NDJSON all remaining ones, at their recorded pace.',
          content: { 'application/json': { schema: playerPageSchema }, [ndjson]: { schema: z.string() } },
        },
      },
    },
    async (context) => {
      const query = context.req.valid('query')
      const { id } = context.req.valid('param')
      const player = await readSession(context.get('sessions'), id, (session) => session.play())
      if (!context.req.header('accept')?.includes(ndjson)) return context.json(playerPage(player, query), 200)
      player.seek(positionOf(query))
      const signal = endOf(context, closing)
      const played = playSession(player, { speed: query.speed ?? 1, types: typesOf(query.types), clock, signal })
      return new Response(played, { headers: { 'content-type': ndjson, 'cache-control': 'no-store' } }) as never
    },
  )
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/search',
      operationId: 'searchSessions',
      summary: 'Search all sessions, or some of them',
      request: { query: searchQuerySchema },
      responses: { 200: json(searchResultSchema, 'Newest first.') },
    },
    async (context) => {
      const { limit = 50, ...query } = context.req.valid('query')
      const { store } = context.get('sessions')
      // One more than wanted tells whether there is another page.
      const found = await store.search({ ...(await searchOf(query, store)), limit: limit + 1 })
      const hits = found.slice(0, limit)
      const last = found.length > limit ? hits.at(-1) : undefined
      const body = { hits: toWire(hits), ...(last && { cursor: cursorOf(last) }) }
      return context.json(body as z.infer<typeof searchResultSchema>, 200)
    },
  )
}

type SearchRequest = Omit<z.infer<typeof searchQuerySchema>, 'limit'>

async function searchOf(request: SearchRequest, store: SessionStore): Promise<SearchQuery> {
  const { q, cursor, cwd, session_id: sessionId, place = 'active', role, since, until } = request
  const folder = cwd === undefined ? undefined : await store.list({ cwd, place, limit: Infinity })
  const inFolder = folder && new Set(folder.sessions.map(({ id }) => id))
  const among = sessionId === undefined ? inFolder : new Set([sessionId].filter((id) => inFolder?.has(id) ?? true))
  return {
    text: q,
    place,
    ...(among && { among }),
    ...(role !== undefined && { roles: role.split(',').map((each) => each.trim()) }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(cursor !== undefined && { after: positionIn(cursor) }),
  }
}

type HitPosition = NonNullable<SearchQuery['after']>

const cursorSchema = z.tuple([z.string(), z.string(), z.int()])

function cursorOf({ timestamp, sessionId, seq }: HitPosition): string {
  return Buffer.from(JSON.stringify([timestamp, sessionId, seq])).toString('base64url')
}

function positionIn(cursor: string): HitPosition {
  try {
    const [timestamp, sessionId, seq] = cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    return { timestamp, sessionId, seq }
  } catch {
    throw new RequestProblem(422, 'invalid-cursor', 'The cursor is not from a page of this search.')
  }
}

const defaultEvents = 200
const ndjson = 'application/x-ndjson'

function playerPage(player: Player, query: z.infer<typeof playerQuerySchema>): z.infer<typeof playerPageSchema> {
  const { limit = defaultEvents } = query
  const types = typesOf(query.types)
  player.seek(positionOf(query))
  const events: unknown[] = []
  while (events.length < limit) {
    const event = player.next(types)
    if (!event) break
    events.push(toWire(event))
  }
  const position = player.peek(types) ? player.position : player.length
  return { events, length: player.length, position } as z.infer<typeof playerPageSchema>
}

function positionOf({ index, seq, time }: z.infer<typeof playerQuerySchema>): PlayerPosition {
  if (index !== undefined) return { index }
  if (seq !== undefined) return { seq }
  return time === undefined ? { index: 0 } : { time }
}

function typesOf(names: string | undefined): z.infer<typeof playbackTypeSchema>[] | undefined {
  return names?.split(',').map((name) => {
    const type = playbackTypeSchema.safeParse(name.trim())
    if (!type.success)
      throw new RequestProblem(422, 'unknown-type', `The event type ${JSON.stringify(name)} does not exist.`)
    return type.data
  })
}

interface PlayRequest {
  speed: number
  /** Absent: all types. */
  types: readonly PlaybackEventType[] | undefined
  clock?: Clock | undefined
  signal: AbortSignal
}

/** The remaining events of the player, one per line, at their recorded pace. Waits for slow readers. */
function playSession(player: Player, { signal, ...request }: PlayRequest): ReadableStream<Uint8Array> {
  const left = new AbortController()
  const lines = linesOf(player, { ...request, signal: AbortSignal.any([signal, left.signal]) })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // On abort, as on shutdown, the stream ends after the last complete event.
        const next = await lines.next().catch(() => ({ done: true as const, value: undefined }))
        if (next.done) controller.close()
        else controller.enqueue(Buffer.from(next.value))
      },
      cancel: () => left.abort(),
    },
    { highWaterMark: 0 },
  )
}

async function* linesOf(
  player: Player,
  { speed, types, clock = systemClock, signal }: PlayRequest,
): AsyncGenerator<string, void> {
  const playerClock = { now: () => clock.now(), sleep: (ms: number, until?: AbortSignal) => clock.wait(ms, until) }
  for await (const event of player.play({ speed, signal, clock: playerClock })) {
    if (types?.includes(event.type) ?? true) yield `${JSON.stringify(toWire(event))}\n`
  }
}

/** Returns undefined or rejects if the model is not available. */
type OpenModel = (model: { provider: string; modelId: string }) => Promise<Model | undefined>

type ContextBody = z.infer<typeof contextSchema>

function contextOnWire(entryId: string | null, context: Context): ContextBody {
  const { system, model, thinkingLevel, provenance, repairs } = context
  return {
    entry_id: entryId,
    messages: context.messages.map(messageWithReason),
    system: system && {
      entry_id: provenance.systemId,
      prompt: system.prompt,
      tools: toWire(system.tools) as unknown[],
      sha256: system.sha256,
    },
    model: model && { entry_id: provenance.modelId, provider: model.provider, model_id: model.modelId },
    thinking_level: thinkingLevel === null ? null : { entry_id: provenance.thinkingLevelId, level: thinkingLevel },
    repairs,
  }
}

/** The request that led to an answer. Rejects for an entry that no model produced. */
async function requestOf(
  session: Session,
  entryId: string,
  openModel: OpenModel,
): Promise<z.infer<typeof entryRequestSchema>> {
  const entry = await session.getEntry(entryId)
  if (entry.type !== 'message' || !entry.request) {
    throw new RequestProblem(404, 'no-request', `Entry ${entryId} is not an answer of a model.`)
  }
  const { sha256, adapter, adapterVersion, params, leafId } = entry.request
  const { provider = '', model = '', thinkingLevel } = entry.message
  const context = await session.getContext({ leafId })
  const reference = { provider, modelId: model }
  // A model without its key cannot be opened; the request may still be valid.
  const opened = await openModel(reference).catch(() => undefined)
  const outcome = (await checkRequest(session, entryId, { model: () => opened })) ?? 'unknown-model'
  return {
    entry_id: entryId,
    recorded: { sha256, adapter, adapter_version: adapterVersion, ...(params && { params }), leaf_id: leafId },
    model: { provider, model_id: model, thinking_level: thinkingLevel ?? null },
    is_exact: params?.['changedBy'] === undefined,
    verified: outcome === 'same',
    reason: outcomes[outcome],
    context: contextOnWire(leafId, context),
  }
}

const outcomes: Record<RequestCheck['outcome'], string> = {
  same: 'The request rebuilt from the log has the recorded hash.',
  different:
    'The request rebuilt from the log has a different hash: the log, or the code that builds requests, has changed since.',
  changed: 'An extension changed the request, so the log alone cannot reproduce it.',
  'unknown-model': 'This server cannot open the model that answered, so it cannot rebuild the request.',
}

function messageWithReason({ entryId, message, made }: ContextMessage): ContextBody['messages'][number] {
  const reason = made ?? 'path'
  return { entry_id: entryId, reason, because: sentences[reason](message.role), message: messageOnWire(message) }
}

const sentences: Record<ContextBody['messages'][number]['reason'], (role: string) => string> = {
  path: (role) => `This ${role} message is on the path to the entry.`,
  summary: () => 'This summary replaces the messages before it.',
  'missing-result': () => 'A call on the path has no result, and models require one for each.',
  'orphan-result': () => 'The call of this result is no longer in the context.',
}
