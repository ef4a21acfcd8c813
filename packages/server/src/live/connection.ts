import type { AttachRequest, ServerFrame } from '@tapetree/client/protocol'
import { textFrame, type FlyingPart, type InFlight } from './in-flight.ts'
import type { RecentLines } from './recent-lines.ts'
import type { StateBoard } from './state-values.ts'

/** The destination of frames: a socket, a streaming response, a test. */
export interface Sink {
  /** Bytes accepted and not sent yet. */
  readonly buffered: number
  send(frame: Buffer): void
  close(code: number, reason: string): void
}

/** The data of a connection, shared by all connections. */
export interface Source {
  readonly lines: RecentLines
  readonly board: StateBoard
  readonly inFlight: InFlight
}

/** Sending pauses while this many bytes are buffered. */
export const highWater = 256 * 1024
/** Notices may be missed; slow clients see the state. */
const maxNotices = 64

/** A notice, and the line that it follows. */
export interface Notice {
  bytes: Buffer
  after: number
}

export type Client = AttachRequest['client']

/** One reader of a session: a cursor into the log, and offsets into the live text. Keeps no queue of its own. */
export class Connection {
  readonly client: Client
  /** Whether the user is not looking. */
  isHidden = false
  readonly #source: Source
  readonly #sink: Sink
  readonly #wantsText: boolean
  /** The last line sent. */
  #seq: number
  #rev: number
  #notices: Notice[] = []
  /** How much of each part in flight was sent. A reused call id is a new part. */
  readonly #offsets = new WeakMap<FlyingPart, number>()
  #isClosed = false

  constructor(source: Source, sink: Sink, options: { client: Client; seq: number; rev: number; wantsText: boolean }) {
    this.client = options.client
    this.#source = source
    this.#sink = sink
    this.#seq = options.seq
    this.#rev = options.rev
    this.#wantsText = options.wantsText
  }

  get seq(): number {
    return this.#seq
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Bytes accepted by the sink and not sent yet. */
  get buffered(): number {
    return this.#sink.buffered
  }

  /** Sends an answer at once, ahead of everything else. */
  reply(frame: ServerFrame): void {
    if (!this.#isClosed) this.#sink.send(Buffer.from(JSON.stringify(frame)))
  }

  notice(notice: Notice): void {
    this.#notices.push(notice)
    if (this.#notices.length > maxNotices) this.#notices.shift()
  }

  /** Sends data while the sink has room: log lines with their notices, then state, then text in flight. */
  pump(): void {
    while (!this.#isClosed && this.#sink.buffered <= highWater) {
      const frame = this.#nextNotice() ?? this.#nextLine() ?? this.#nextState() ?? this.#nextText()
      if (!frame) return
      this.#sink.send(frame)
    }
  }

  /** Whether the whole log was sent. */
  get isCurrent(): boolean {
    return this.#source.lines.after(this.#seq) === undefined
  }

  close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sink.close(code, reason)
  }

  #nextLine(): Buffer | undefined {
    const { lines } = this.#source
    const line = lines.after(this.#seq)
    if (!line) {
      // Too far behind: the next line is only in the log. The client reconnects with its cursor, and gets a
      // snapshot.
      if (!lines.reaches(this.#seq) && this.#seq > 0) this.close(1012, 'too far behind')
      return undefined
    }
    this.#seq = line.seq + line.count - 1
    return line.bytes
  }

  #nextNotice(): Buffer | undefined {
    const next = this.#notices[0]
    return next && next.after <= this.#seq ? this.#notices.shift()?.bytes : undefined
  }

  #nextState(): Buffer | undefined {
    const { board } = this.#source
    if (board.rev <= this.#rev) return undefined
    const [next] = board.newerThan(this.#rev)
    this.#rev = next?.rev ?? board.rev
    return next?.bytes
  }

  #nextText(): Buffer | undefined {
    if (!this.#wantsText) return undefined
    const { inFlight } = this.#source
    if (inFlight.isEmpty) return undefined
    for (const flying of inFlight.parts()) {
      const frame = textFrame(flying, this.#offsets.get(flying) ?? 0)
      if (!frame) continue
      this.#offsets.set(flying, frame.end)
      return frame.bytes
    }
    return undefined
  }
}
