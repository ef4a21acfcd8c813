import type { Clock } from '@tapetree/agent'
import { clientFrameSchema, closeCodes, limits, type AttachRequest, type ClientFrame } from '@tapetree/client'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'
import { checkRole, mayDo, type Caller } from '../auth/operation-roles.ts'
import type { Connection } from '../live/connection.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { RequestProblem, problemOf } from '../util/problem-error.ts'
import { SocketSink } from './socket-sink.ts'

export interface RemoteScreenOptions {
  socket: WebSocket
  stream: Duplex
  caller: Caller
  sessions: LiveSessions
  sessionId: string
  clock: Clock
}

type State =
  | { type: 'new' }
  | { type: 'attaching'; early: ClientFrame[] }
  | { type: 'attached'; live: LiveSession; connection: Connection }
  | { type: 'over' }

/** Commands of one client that may be under way; more are read when some are done. */
const maxUnderWay = 64
/** A session that is closed again and again while a client gets ready is not one to wait for. */
const maxAttempts = 20

/** One WebSocket that looks at one session. */
export class RemoteScreen {
  readonly #options: RemoteScreenOptions
  readonly #sink: SocketSink
  readonly #rate: FrameRate
  readonly #attached = new AbortController()
  #state: State = { type: 'new' }
  #underWay = 0

  constructor(options: RemoteScreenOptions) {
    this.#options = options
    this.#sink = new SocketSink(options.socket, options.stream, () => this.#drained())
    this.#rate = new FrameRate(options.clock)
  }

  /** Listens from now on; calls back when the socket is closed. */
  start(closed: () => void): void {
    const { socket, clock } = this.#options
    socket.on('message', (data, isBinary) => this.#take(data, isBinary))
    // What follows is a close, with its code.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#leave()
      closed()
    })
    clock.wait(limits.attachMs, this.#attached.signal).then(
      () => this.close(closeCodes.noAttach, 'no attach in time'),
      () => undefined,
    )
  }

  close(code: number, reason: string): void {
    // In this order: a session that is left closes the socket too, as if nothing were the matter.
    this.#options.socket.close(code, reason)
    this.#leave()
  }

  /** Ends one that takes nothing. It would never read a farewell. */
  endIfStalled(now: number, afterMs: number): void {
    if (this.#sink.stalledMs(now) >= afterMs) this.#options.socket.terminate()
  }

  #take(data: RawData, isBinary: boolean): void {
    if (this.#state.type === 'over') return
    if (!this.#rate.take()) return this.close(closeCodes.rate, 'too many frames')
    const frame = isBinary ? undefined : parseFrame(data)
    if (!frame) return this.close(closeCodes.badFrame, 'not a frame of tapetree.v1')
    // Of a newer client.
    if (frame === 'unknown') return
    switch (this.#state.type) {
      case 'new':
        if (frame.type !== 'attach') return this.close(closeCodes.badFrame, 'the first frame is attach')
        void this.#attach(frame.data)
        return
      case 'attaching':
        this.#state.early.push(frame)
        return
      case 'attached':
        this.#answer(frame, this.#state)
        return
      default:
        this.#state satisfies never
    }
  }

  async #attach(request: AttachRequest): Promise<void> {
    const early: ClientFrame[] = []
    this.#state = { type: 'attaching', early }
    try {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const live = await this.#options.sessions.get(this.#options.sessionId)
        const prepared = await live.prepare(request)
        if (this.#hasLeft()) return
        if (!this.#hasClaimed(request.client.id)) {
          return this.close(closeCodes.badFrame, 'somebody else has this client id')
        }
        const connection = live.attach(request, this.#sink, prepared)
        if (connection === 'not-prepared') continue
        // With a word for a reason: without one an error is made, with its stack, and kept as long as the socket.
        this.#attached.abort('attached')
        const state = { type: 'attached', live, connection } as const
        this.#state = state
        for (const frame of early) if (!this.#hasLeft()) this.#answer(frame, state)
        return
      }
      throw new RequestProblem(503, 'session-busy', 'The session does not stay open.')
    } catch (error) {
      this.#refuse(error)
    }
  }

  #refuse(error: unknown): void {
    const { status, title } = problemOf(error)
    const isGone = status === 404 || status === 400
    const data = isGone ? { reason: title } : { reason: title, retry_after_ms: 1000 }
    this.#sink.send(Buffer.from(JSON.stringify({ type: isGone ? 'gone' : 'bye', data })))
    this.close(isGone ? closeCodes.gone : closeCodes.restart, title)
  }

  #answer(frame: ClientFrame, { live, connection }: { live: LiveSession; connection: Connection }): void {
    switch (frame.type) {
      case 'attach':
        return this.close(closeCodes.badFrame, 'attached already')
      case 'cmd':
        void this.#perform(frame.data, live, connection)
        return
      case 'ping': {
        live.presence.renew(connection.client.id)
        const { n } = frame.data
        const time = new Date(this.#options.clock.now()).toISOString()
        connection.reply({ type: 'pong', data: { n, head: live.session.head, time } })
        return this.#paceReading()
      }
      case 'presence': {
        const { visibility, typing = false } = frame.data
        return live.present(connection, { visibility, typing })
      }
      default:
        frame satisfies never
    }
  }

  async #perform(
    { id, op, args, if_head: ifHead }: Extract<ClientFrame, { type: 'cmd' }>['data'],
    live: LiveSession,
    connection: Connection,
  ): Promise<void> {
    const { caller } = this.#options
    try {
      checkRole(caller, { op, args }, live)
    } catch (refused) {
      connection.reply({ type: 'ack', data: { id, ok: false, error: problemOf(refused) } })
      return this.#paceReading()
    }
    this.#underWay++
    this.#paceReading()
    const sender = { tokenId: caller.tokenId, mayDrive: mayDo(caller.role, 'drive') }
    const frame = { op, args, sender, ...(ifHead !== undefined && { ifHead }) }
    // Whatever goes wrong is the answer to this one command; it must not end the server.
    const ack = await live
      .perform(id, connection.client.id, frame)
      .catch((error: unknown) => ({ id, ok: false as const, error: problemOf(error) }))
    connection.reply({ type: 'ack', data: ack })
    this.#underWay--
    this.#paceReading()
  }

  #drained(): void {
    if (this.#state.type === 'attached') this.#state.connection.pump()
    this.#paceReading()
  }

  /** Who does not take answers is not read from: what waits for them is bounded. */
  #paceReading(): void {
    const { socket } = this.#options
    if (this.#sink.isFull || this.#underWay >= maxUnderWay) socket.pause()
    else if (socket.isPaused) socket.resume()
  }

  /** A client id replaces its own older connection, never that of somebody else: ids are there for all to see. */
  #hasClaimed(clientId: string): boolean {
    const { sessions, caller } = this.#options
    try {
      sessions.clientIds.claim(clientId, caller.tokenId)
      return true
    } catch {
      // The only thing that it throws says that the id is taken.
      return false
    }
  }

  #hasLeft(): boolean {
    return this.#state.type === 'over'
  }

  #leave(): void {
    const state = this.#state
    this.#state = { type: 'over' }
    this.#attached.abort('left')
    if (state.type === 'attached') state.live.detach(state.connection)
  }
}

/** Undefined where it is no frame, or one that is known and has something wrong in it. */
function parseFrame(data: RawData): ClientFrame | 'unknown' | undefined {
  try {
    const text = Array.isArray(data) ? Buffer.concat(data).toString() : Buffer.from(data as Buffer).toString()
    const parsed: unknown = JSON.parse(text)
    return isUnknown(parsed) ? 'unknown' : clientFrameSchema.safeParse(parsed).data
  } catch {
    // No JSON is no frame.
    return undefined
  }
}

const knownTypes = new Set<unknown>(clientFrameSchema.options.map(({ shape }) => shape.type.value))

function isUnknown(frame: unknown): boolean {
  if (typeof frame !== 'object' || frame === null || !('type' in frame)) return false
  return typeof frame.type === 'string' && !knownTypes.has(frame.type)
}

/** Enough for a client that sends all its open commands again. */
const burst = 500
const perSecond = 50

/** How many frames a client may send: many at once, fewer for long. */
class FrameRate {
  readonly #clock: Clock
  #left = burst
  #at: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#at = clock.now()
  }

  /** False where it is one too many. */
  take(): boolean {
    const now = this.#clock.now()
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < 1) return false
    this.#left--
    return true
  }
}
