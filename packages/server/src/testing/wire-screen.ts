import {
  snapshotFromWire,
  subprotocol,
  type Ack,
  type Attached,
  type AttachRequest,
  type ClientFrame,
  type Cursor,
  type Operation,
  type ServerFrame,
  type StateKey,
  type TextFrame,
} from '@tapetree/client/protocol'
import { checksum, fromDisk, type DiskLine } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type Transcript } from '@tapetree/session/view'
import { WebSocket } from 'ws'

export interface WireLine extends Cursor {
  text: string
  disk: DiskLine & { seq: number; crc?: unknown }
}

/** Observes a screen: receives every frame before it is applied. */
export interface ScreenWatcher {
  attached?(screen: WireScreen, request: AttachRequest, attached: Attached): void
  line?(screen: WireScreen, line: WireLine): void
  text?(screen: WireScreen, frame: TextFrame): void
  notice?(screen: WireScreen, frame: ServerFrame): void
  ack?(screen: WireScreen, ack: Ack): void
  closed?(screen: WireScreen, code: number): void
}

export interface WireScreenOptions {
  id: string
  url: string
  headers?: Record<string, string>
  watcher?: ScreenWatcher
  /** Maximum number of entries in a snapshot. */
  window?: number
  /** Delay before it reconnects. */
  backoffMs?: number
}

/** A screen on a real socket that implements the client side of the protocol, with all its state visible. */
export class WireScreen {
  readonly id: string
  transcript: Transcript = emptyTranscript()
  cursor: Cursor | undefined
  /** Whether its transcript started with a snapshot. */
  isFromSnapshot = false
  readonly state = new Map<StateKey, { value: unknown; rev: number }>()
  readonly acks = new Map<string, Ack>()
  /** The last head that the server sent. */
  head = 0
  readonly #options: WireScreenOptions
  readonly #unacknowledged = new Map<string, ClientFrame>()
  readonly #waiting = new Set<() => void>()
  #socket: WebSocket | undefined
  #isAttached = false
  #isAway = true
  #pings = 0
  #pongs = 0
  #retry: NodeJS.Timeout | undefined

  constructor(options: WireScreenOptions) {
    this.id = options.id
    this.#options = options
  }

  get isAttached(): boolean {
    return this.#isAttached
  }

  get isAway(): boolean {
    return this.#isAway
  }

  get unacknowledged(): ReadonlySet<string> {
    return new Set(this.#unacknowledged.keys())
  }

  /** Connects: with its cursor, with another one, or as a new client. */
  connect(after: Cursor | 'first' | undefined = this.cursor): void {
    this.#leaveSocket()
    this.#isAway = false
    const { url, headers, id, window } = this.#options
    const socket = new WebSocket(url, [subprotocol], { headers: headers ?? {}, perMessageDeflate: false })
    this.#socket = socket
    const request: AttachRequest = {
      client: { id, name: `Screen ${id}`, kind: 'test' },
      ...(after !== undefined && after !== 'first' && { after }),
      ...(window !== undefined && { window }),
    }
    socket.on('open', () => socket.send(JSON.stringify({ type: 'attach', data: request })))
    socket.on('message', (data: Buffer) => {
      if (socket === this.#socket) this.#take(data.toString(), request)
    })
    socket.on('error', () => undefined)
    socket.on('close', (code) => this.#closed(socket, code))
  }

  /** Restores stored lines, and connects with the cursor of the last one. */
  restore(lines: readonly string[]): void {
    for (const text of lines) this.#applyLine(text, JSON.parse(text) as WireLine['disk'])
  }

  /** Simulates a network failure: no close frame. */
  cut(): void {
    this.#leaveSocket()
    this.#isAway = true
    this.#changed()
  }

  /** Drops its transcript, and reconnects. */
  reload(): void {
    this.transcript = emptyTranscript()
    this.cursor = undefined
    this.state.clear()
    this.connect('first')
  }

  command(op: Operation, args: Record<string, unknown>, id: string): void {
    const frame: ClientFrame = { type: 'cmd', data: { id, op, args } }
    this.#unacknowledged.set(id, frame)
    if (this.#isAttached) this.send(frame)
  }

  /** Sends any frame, also an unknown one. */
  send(frame: object): void {
    this.#socket?.send(JSON.stringify(frame))
  }

  async ping(): Promise<void> {
    const number = ++this.#pings
    this.send({ type: 'ping', data: { n: number, seen: this.cursor?.seq ?? 0 } })
    await this.until(() => this.#pongs >= number)
  }

  async acked(id: string): Promise<Ack> {
    await this.until(() => this.acks.has(id))
    return this.acks.get(id) as Ack
  }

  /** Waits for a condition, checked after every frame. */
  async until(isTrue: () => boolean, signal?: AbortSignal): Promise<void> {
    while (!isTrue()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      signal?.addEventListener('abort', () => resolve(), { once: true })
      await promise
      signal?.throwIfAborted()
    }
  }

  /** The local port, while it is connected. */
  get localPort(): number | undefined {
    const { _socket: socket } = (this.#socket ?? {}) as { _socket?: { localPort?: number } }
    return socket?.localPort
  }

  #leaveSocket(): void {
    clearTimeout(this.#retry)
    const socket = this.#socket
    this.#socket = undefined
    this.#isAttached = false
    socket?.terminate()
  }

  #closed(socket: WebSocket, code: number): void {
    if (socket !== this.#socket) return
    this.#socket = undefined
    this.#isAttached = false
    this.#options.watcher?.closed?.(this, code)
    if (!this.#isAway) this.#retry = setTimeout(() => this.connect(), this.#options.backoffMs ?? 10)
    this.#changed()
  }

  #take(text: string, request: AttachRequest): void {
    const frame = JSON.parse(text) as ServerFrame | (DiskLine & { seq: number; crc?: unknown })
    if ('seq' in frame && !('data' in frame)) this.#takeLine(text, frame)
    else this.#takeFrame(frame as ServerFrame, request)
    this.#changed()
  }

  #takeLine(text: string, disk: DiskLine & { seq: number; crc?: unknown }): void {
    this.#options.watcher?.line?.(this, { seq: disk.seq, crc: crcOf(text, disk), text, disk })
    this.#applyLine(text, disk)
    if (this.#goesOnElsewhere(disk)) this.connect('first')
  }

  #applyLine(text: string, disk: DiskLine & { seq: number; crc?: unknown }): void {
    this.transcript = reduceTranscript(this.transcript, { type: 'line', line: fromDisk(disk, disk.seq) })
    this.cursor = { seq: disk.seq, crc: crcOf(text, disk) }
    this.head = Math.max(this.head, disk.seq)
  }

  /** The session continues from an entry outside of the snapshot: only the server knows its path. */
  #goesOnElsewhere({ id, type }: DiskLine): boolean {
    const { leaf } = this.transcript.path
    const from = type === 'leaf' ? leaf : leaf?.id === id ? leaf.parent : null
    return from?.item?.type === 'gap' && from.item.gap.type === 'not_loaded'
  }

  #takeFrame(frame: ServerFrame, request: AttachRequest): void {
    const { watcher } = this.#options
    switch (frame.type) {
      case 'attached':
        watcher?.attached?.(this, request, frame.data)
        this.#attached(frame.data)
        return
      case 'delta':
      case 'partial':
        watcher?.text?.(this, frame.data)
        this.transcript = reduceTranscript(this.transcript, { type: frame.type, ...frame.data })
        return
      case 'state':
        this.state.set(frame.data.key, { value: frame.data.value, rev: frame.rev })
        return
      case 'queue_updated':
      case 'queue_message_sending':
      case 'queue_message_sent':
        watcher?.notice?.(this, frame)
        return
      case 'ack':
        watcher?.ack?.(this, frame.data)
        this.#unacknowledged.delete(frame.data.id)
        this.acks.set(frame.data.id, frame.data)
        return
      case 'pong':
        this.#pongs = Math.max(this.#pongs, frame.data.n)
        return
      default:
        return // unknown frames are ignored
    }
  }

  #attached({ snapshot, state, head }: Attached): void {
    this.head = head.seq
    this.#isAttached = true
    for (const [key, value] of Object.entries(state)) this.state.set(key as StateKey, value)
    if (snapshot) {
      const read = snapshotFromWire(snapshot)
      this.transcript = reduceTranscript(this.transcript, { type: 'snapshot', snapshot: read })
      this.cursor = snapshot.head
      this.isFromSnapshot = true
    } else {
      // Each socket resends text in flight.
      this.transcript = { ...this.transcript, inFlight: new Map() }
    }
    for (const frame of this.#unacknowledged.values()) this.send(frame)
  }

  #changed(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const tell of waiting) tell()
  }
}

function crcOf(text: string, { crc }: { crc?: unknown }): string {
  return typeof crc === 'string' ? crc : checksum(text)
}
