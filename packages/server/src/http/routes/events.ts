import {
  eventPageSchema,
  eventQuerySchema,
  streamQuerySchema,
  type AttachRequest,
  type Cursor,
} from '@tapetree/client/protocol'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { newId, type Session } from '@tapetree/session'
import type { LogLine } from '@tapetree/session/log-store'
import type { Context } from 'hono'
import { z } from 'zod'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import type { ApiParts, AppEnv, Routes } from '../app.ts'
import { readSession, sessionParameter } from './parameters.ts'
import { eventStreamHeaders, EventStream, type EventStreamOptions } from '../sse.ts'
import type { Connection, Sink } from '../../live/connection.ts'
import type { LiveSession } from '../../live/live-session.ts'
import { RequestProblem } from '../../util/problem-error.ts'

const ndjson = 'application/x-ndjson'

export function addEvents(routes: Routes, { clock = systemClock, closing }: ApiParts): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/events',
      operationId: 'listEvents',
      summary: 'Get lines of the log: a page, the next line when it arrives, or all lines as NDJSON',
      request: { params: sessionParameter, query: eventQuerySchema },
      responses: {
        200: {
          description: 'Lines byte for byte. As NDJSON (by `Accept`) without a limit if none is given.',
          content: { 'application/json': { schema: eventPageSchema }, [ndjson]: { schema: z.string() } },
        },
      },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const { wait = 0, ...query } = context.req.valid('query')
      const sessions = context.get('sessions')
      const { after } = query
      if (wait > 0 && after !== undefined) {
        const signal = AbortSignal.any([closing, context.req.raw.signal])
        await lineAfter(await sessions.get(id), { after, wait, signal, clock })
      }
      if (context.req.header('accept')?.includes(ndjson)) return (await streamLines(sessions, id, query)) as never
      return readSession(sessions, id, async (session) => {
        const { head } = session
        const lines = await eventPage(session, query)
        // Not reserialized: a line has the same bytes on every endpoint.
        const body = `{"events":[${lines.join(',')}],"head":${JSON.stringify(head)}}`
        return context.body(body, 200, { 'content-type': 'application/json' }) as never
      })
    },
  )

  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/sessions/{id}/events/stream',
      operationId: 'followSession',
      summary: 'Follow the session as server-sent events',
      request: { params: sessionParameter, query: streamQuerySchema },
      responses: {
        200: {
          description: 'First `attached`; lines have `<seq>-<crc>` as id; a `ping` every 15 seconds.',
          content: { 'text/event-stream': { schema: z.string() } },
        },
      },
    },
    async (context) => {
      const { id } = context.req.valid('param')
      const { after, window, deltas, client_id: clientId } = context.req.valid('query')
      if (clientId !== undefined) context.get('sessions').clientIds.claim(clientId, context.get('caller').tokenId)
      const cursor = cursorOf(context.req.header('last-event-id') ?? after)
      const stream = await streamSession(() => context.get('sessions').get(id), {
        clock,
        signal: endOf(context, closing),
        deltas: deltas !== 'false',
        ...(cursor && { after: cursor }),
        ...(window !== undefined && { window }),
        ...(clientId !== undefined && { clientId }),
      })
      return context.body(stream.readable, 200, eventStreamHeaders)
    },
  )
}

/** Aborts when streams to this caller must end. */
export function endOf(context: Context<AppEnv>, closing: AbortSignal): AbortSignal {
  const revoked = context.get('revoked')
  return AbortSignal.any([closing, context.req.raw.signal, ...(revoked ? [revoked] : [])])
}

/** Resolves when there is a line after this one, or on timeout. */
async function lineAfter(
  live: LiveSession,
  { after, wait, signal, clock }: { after: number; wait: number; signal: AbortSignal; clock: Clock },
): Promise<void> {
  if (live.session.head.seq > after) return
  const over = new AbortController()
  const stop = live.onLine(({ seq }) => {
    if (seq > after) over.abort()
  })
  // Either outcome of the wait is fine.
  await clock.wait(wait * 1000, AbortSignal.any([over.signal, signal])).catch(() => undefined)
  stop()
}

/** The lines one by one, each with a newline, until the signal aborts. */
async function streamLines(sessions: ReachableSessions, sessionId: string, query: PageQuery): Promise<Response> {
  const session = await sessions.store.open(sessionId, { readOnly: true })
  const lines = linesOf(session, query)
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await lines.next()
      if (done) controller.close()
      else controller.enqueue(Buffer.from(`${value}\n`))
    },
    async cancel() {
      await lines.return(undefined)
      // A generator that never ran does not close it.
      await session.close()
    },
  })
  return new Response(stream, { headers: { 'content-type': ndjson, 'cache-control': 'no-store' } })
}

async function* linesOf(session: Session, query: PageQuery): AsyncGenerator<string, void> {
  try {
    if (query.limit !== undefined || query.before !== undefined) yield* await eventPage(session, query)
    else for await (const line of session.lines({ after: query.after ?? 0 })) yield textOf(line)
  } finally {
    await session.close()
  }
}

interface PageQuery {
  after?: number | undefined
  before?: number | undefined
  limit?: number | undefined
}

const defaultLimit = 500
/** A page ends after this many bytes, but has at least one line. */
const maxPageBytes = 4 * 1024 * 1024

/** Lines byte for byte, oldest first: those after a line, or the newest before one. */
async function eventPage(session: Session, { after, before, limit = defaultLimit }: PageQuery): Promise<string[]> {
  if (before !== undefined && after === undefined) return linesBefore(session, before, limit)
  const lines: string[] = []
  let bytes = 0
  for await (const line of session.lines({ after: after ?? 0 })) {
    if (before !== undefined && line.seq >= before) break
    const text = textOf(line)
    bytes += text.length
    if (lines.length > 0 && bytes > maxPageBytes) break
    lines.push(text)
    if (lines.length === limit) break
  }
  return lines
}

function textOf(line: LogLine): string {
  return line.type === 'line' ? line.text : JSON.stringify({ seq: line.seq, type: 'lost', count: line.count })
}

/** Each line has its own number, so the newest before one have the numbers before it. */
async function linesBefore(session: Session, before: number, limit: number): Promise<string[]> {
  const end = Math.min(before, session.head.seq + 1)
  const lines: string[] = []
  let bytes = 0
  for await (const line of session.lines({ after: Math.max(0, end - 1 - limit) })) {
    if (line.seq >= end) break
    const text = textOf(line)
    bytes += text.length
    lines.push(text)
    // If there are too many bytes, keep the newest lines.
    while (bytes > maxPageBytes && lines.length > 1) bytes -= lines.shift()?.length ?? 0
  }
  return lines
}

interface SessionStreamRequest extends Pick<EventStreamOptions, 'clock' | 'signal'> {
  after?: Cursor
  window?: number
  deltas: boolean
  clientId?: string
}

/** Uses the same connection as a WebSocket. A log line has its cursor as id; other events are named by type. */
async function streamSession(open: () => Promise<LiveSession>, request: SessionStreamRequest): Promise<EventStream> {
  const { after, window, deltas, clientId = `stream-${newId()}` } = request
  const attach: AttachRequest = {
    client: { id: clientId, kind: 'stream' },
    deltas,
    ...(after && { after }),
    ...(window !== undefined && { window }),
  }
  let attached: Attached | undefined
  const stream = new EventStream({
    clock: request.clock,
    signal: request.signal,
    onDrain: () => attached?.connection.pump(),
    onPing: () => attached?.live.presence.renew(clientId),
    onClose: () => attached?.live.detach(attached.connection),
  })
  attached = await attachTo(open, attach, sinkOf(stream)).catch((error: unknown) => {
    stream.close()
    throw error
  })
  if (stream.isClosed) attached.live.detach(attached.connection)
  return stream
}

interface Attached {
  live: LiveSession
  connection: Connection
}

/** Retries if more lines arrive than are kept while the snapshot is made, or if the session is closed. */
async function attachTo(open: () => Promise<LiveSession>, request: AttachRequest, sink: Sink): Promise<Attached> {
  for (let tries = 0; tries < 5; tries++) {
    const live = await open()
    const connection = live.attach(request, sink, await live.prepare(request))
    if (connection !== 'not-prepared') return { live, connection }
  }
  throw new RequestProblem(503, 'too-busy', 'The session changes too quickly to attach. Try again.')
}

function sinkOf(stream: EventStream): Sink {
  return {
    get buffered() {
      return stream.buffered
    },
    send(frame) {
      const data = frame.toString()
      const parsed = JSON.parse(data) as Frame
      if (typeof parsed.seq === 'number') stream.send({ id: eventIdOf(parsed), data })
      else stream.send({ event: parsed.type, data })
    },
    close: () => stream.close(),
  }
}

interface Frame {
  type: string
  seq?: number
  crc?: unknown
  line_crc?: unknown
  count?: number
}

function eventIdOf({ seq = 0, crc, line_crc, count = 1 }: Frame): string {
  const known = typeof crc === 'string' ? crc : typeof line_crc === 'string' ? line_crc : ''
  return `${seq + count - 1}-${known}`
}

/** The cursor in `Last-Event-ID`; undefined if it has none. */
function cursorOf(eventId: string | undefined): Cursor | undefined {
  const found = /^(\d{1,15})-([0-9A-Za-z]{0,64})$/.exec(eventId ?? '')
  return found ? { seq: Number(found[1]), crc: found[2] ?? '' } : undefined
}
