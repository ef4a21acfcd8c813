import { newId } from '@tapetree/session'
import type { AttachRequest, Cursor } from '@tapetree/client'
import type { Connection, Sink } from '../../live/connection.ts'
import type { LiveSession } from '../../live/live-session.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import { EventStream, type EventStreamOptions } from '../sse.ts'

export interface SessionStreamRequest extends Pick<EventStreamOptions, 'clock' | 'signal'> {
  after?: Cursor
  window?: number
  deltas: boolean
  clientId?: string
}

/** Uses the same connection as a WebSocket. A log line has its cursor as id; other events are named by type. */
export async function streamSession(
  open: () => Promise<LiveSession>,
  request: SessionStreamRequest,
): Promise<EventStream> {
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
export function cursorOf(eventId: string | undefined): Cursor | undefined {
  const found = /^(\d{1,15})-([0-9A-Za-z]{0,64})$/.exec(eventId ?? '')
  return found ? { seq: Number(found[1]), crc: found[2] ?? '' } : undefined
}
