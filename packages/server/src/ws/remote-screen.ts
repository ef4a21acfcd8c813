import type { Clock } from '@tapetree/agent/run'
import { clientFrameSchema, closeCodes, limits, type AttachRequest, type ClientFrame } from '@tapetree/client/protocol'
import type { Duplex } from 'node:stream'
import type { RawData, WebSocket } from 'ws'
import type { UsageLimits } from '../auth/limits.ts'
import { checkRole, mayDo, type Caller } from '../auth/operation-roles.ts'
import { highWater, type Connection, type Sink } from '../live/connection.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { ReachableSessions } from '../live/reachable-sessions.ts'
import { RequestProblem, problemOf } from '../util/problem-error.ts'
import { FrameRate } from './frame-rate.ts'

export interface RemoteScreenOptions {
  socket: WebSocket
  stream: Duplex
  caller: Caller
  sessions: ReachableSessions
  limits: UsageLimits
  sessionId: string
  clock: Clock
}

type State =
  | { type: 'new' }
  | { type: 'attaching'; early: ClientFrame[] }
  | { type: 'attached'; live: LiveSession; connection: Connection }
  | { type: 'over' }

/** Maximum number of pending commands of one client; reading pauses beyond it. */
const maxUnderWay = 64
/** Maximum number of attempts, if the session keeps being closed while the client attaches. */
const maxAttempts = 20

/** One WebSocket attached to one session. */
export class RemoteScreen {
  readonly #options: RemoteScreenOptions
  readonly #sink: SocketSink
  readonly #rate: FrameRate
  /** Ends the wait for the first frame. */
  readonly #heard = new AbortController()
  #state: State = { type: 'new' }
  #underWay = 0

  constructor(options: RemoteScreenOptions) {
    this.#options = options
    this.#sink = new SocketSink(options.socket, options.stream, () => this.#drained())
    this.#rate = new FrameRate(options.clock)
  }

  /** Starts listening; calls `closed` when the socket is closed. */
  start(closed: () => void): void {
    const { socket, clock } = this.#options
    socket.on('message', (data, isBinary) => this.#take(data, isBinary))
    // An error is always followed by a close, with its code.
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#leave()
      closed()
    })
    clock.wait(limits.attachMs, this.#heard.signal).then(
      () => this.close(closeCodes.noAttach, 'no attach in time'),
      () => undefined,
    )
  }

  close(code: number, reason: string): void {
    // In this order: leaving the session also closes the socket, with a normal code.
    this.#options.socket.close(code, reason)
    this.#leave()
  }

  /** Ends a socket that takes no data. It would never read a close frame. */
  endIfStalled(now: number, afterMs: number): void {
    if (this.#sink.stalledMs(now) >= afterMs) this.#options.socket.terminate()
  }

  #take(data: RawData, isBinary: boolean): void {
    if (this.#hasLeft()) return
    if (!this.#rate.take()) return this.close(closeCodes.rate, 'too many frames')
    const frame = isBinary ? undefined : parseFrame(data)
    if (!frame) return this.close(closeCodes.badFrame, 'not a frame of tapetree.v1')
    // A frame of a newer client.
    if (frame === 'unknown') return
    switch (this.#state.type) {
      case 'new':
        if (frame.type !== 'attach') return this.close(closeCodes.badFrame, 'the first frame is attach')
        void this.#attach(frame.data)
        return
      case 'attaching':
        this.#state.early.push(frame)
        return this.#paceReading()
      case 'attached':
        this.#answer(frame, this.#state)
        return
      case 'over':
        return
      default:
        this.#state satisfies never
    }
  }

  async #attach(request: AttachRequest): Promise<void> {
    // Opening the session may take longer, and is up to the server. A string as reason: without one, an error with its
    // stack would be kept as long as the socket.
    this.#heard.abort('attaching')
    const early: ClientFrame[] = []
    this.#state = { type: 'attaching', early }
    try {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const live = await this.#options.sessions.get(this.#options.sessionId)
        const prepared = await live.prepare(request)
        if (this.#hasLeft()) return
        if (!this.#hasClaimed(request.client.id)) {
          return this.close(closeCodes.badFrame, 'another token has this client id')
        }
        const connection = live.attach(request, this.#sink, prepared)
        if (connection === 'not-prepared') continue
        const state = { type: 'attached', live, connection } as const
        this.#state = state
        for (const frame of early) if (!this.#hasLeft()) this.#answer(frame, state)
        return this.#paceReading()
      }
      throw new RequestProblem(503, 'session-busy', 'The session was closed repeatedly during the attach. Try again.')
    } catch (error) {
      this.#refuse(error)
    }
  }

  #refuse(error: unknown): void {
    const { type, title } = problemOf(error)
    // Clients discard their unsent commands when a session is gone. Anything else may be missing for a time only.
    const isGone = type === 'session-not-found' || type === 'invalid-id'
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
    const { caller, limits } = this.#options
    try {
      checkRole(caller, { op, args }, live)
      limits.takeRequest(caller)
    } catch (refused) {
      connection.reply({ type: 'ack', data: { id, ok: false, error: problemOf(refused) } })
      return this.#paceReading()
    }
    this.#underWay++
    this.#paceReading()
    const sender = { tokenId: caller.tokenId, mayDrive: mayDo(caller.role, 'drive') }
    const checkLimits = (): Promise<void> => limits.of(caller).checkCommand(op)
    const frame = { op, args, sender, checkLimits, ...(ifHead !== undefined && { ifHead }) }
    // Any failure is the answer to this command; it must not crash the server.
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

  /** Pauses reading while the client takes no answers or many frames wait, which bounds the buffers. */
  #paceReading(): void {
    const { socket } = this.#options
    const waiting = this.#state.type === 'attaching' ? this.#state.early.length : this.#underWay
    if (this.#sink.isFull || waiting >= maxUnderWay) socket.pause()
    else if (socket.isPaused) socket.resume()
  }

  /** A client id replaces its own older connection, never one of another token: ids are visible to all. */
  #hasClaimed(clientId: string): boolean {
    const { sessions, caller } = this.#options
    try {
      sessions.clientIds.claim(clientId, caller.tokenId)
      return true
    } catch {
      // It throws only if the id is taken.
      return false
    }
  }

  /** Also before the client has answered our close frame: on its new connection it sends again what has no answer. */
  #hasLeft(): boolean {
    return this.#state.type === 'over' || this.#sink.isClosed
  }

  #leave(): void {
    const state = this.#state
    this.#state = { type: 'over' }
    this.#heard.abort('left')
    if (state.type === 'attached') state.live.detach(state.connection)
  }
}

/** Undefined if it is malformed. */
function parseFrame(data: RawData): ClientFrame | 'unknown' | undefined {
  try {
    const text = Array.isArray(data) ? Buffer.concat(data).toString() : Buffer.from(data as Buffer).toString()
    const parsed: unknown = JSON.parse(text)
    return isUnknown(parsed) ? 'unknown' : clientFrameSchema.safeParse(parsed).data
  } catch {
    // Not JSON.
    return undefined
  }
}

const knownTypes = new Set<unknown>(clientFrameSchema.options.map(({ shape }) => shape.type.value))

function isUnknown(frame: unknown): boolean {
  if (typeof frame !== 'object' || frame === null || !('type' in frame)) return false
  return typeof frame.type === 'string' && !knownTypes.has(frame.type)
}

/** Sends frames to a WebSocket. Reports when there is room again, and whether data leaves at all. */
class SocketSink implements Sink {
  readonly #socket: WebSocket
  readonly #stream: Duplex
  readonly #drained: () => void
  isClosed = false
  #isFull = false
  #sent = 0
  #seen: { mark: string; since: number } | undefined

  constructor(socket: WebSocket, stream: Duplex, drained: () => void) {
    this.#socket = socket
    this.#stream = stream
    this.#drained = drained
  }

  get buffered(): number {
    return this.#socket.bufferedAmount
  }

  get isFull(): boolean {
    return this.buffered > highWater
  }

  send(frame: Buffer): void {
    this.#socket.send(frame, textFrame, this.#flushed)
    if (this.isFull) this.#isFull = true
  }

  close(code: number, reason: string): void {
    this.isClosed = true
    this.#socket.close(code, reason)
  }

  /** How long no data has left although some is waiting. */
  stalledMs(now: number): number {
    if (this.buffered === 0) {
      this.#seen = undefined
      return 0
    }
    const mark = `${this.#sent} ${unsentBytes(this.#stream)}`
    if (this.#seen?.mark !== mark) this.#seen = { mark, since: now }
    return now - this.#seen.since
  }

  /** One callback for all frames: ten thousand sockets receive each line. */
  readonly #flushed = (): void => {
    this.#sent++
    if (!this.#isFull || this.isFull) return
    this.#isFull = false
    this.#drained()
  }
}

const textFrame = { binary: false }

/**
 * Bytes of a started write that the kernel has not accepted. Node has no public API for it; without it, only
 * whole writes count.
 */
function unsentBytes(stream: Duplex): number {
  const { _handle: handle } = stream as { _handle?: { writeQueueSize?: unknown } | null }
  return typeof handle?.writeQueueSize === 'number' ? handle.writeQueueSize : 0
}
