import type { AttachRequest, ServerFrame } from '@tapetree/client'
import { textFrame, type FlyingPart, type InFlight } from './in-flight.ts'
import type { RecentLines } from './recent-lines.ts'
import type { StateBoard } from './state-board.ts'

/** Where frames go: a socket, a response that streams, a test. */
export interface Sink {
  /** Bytes that were given to it and have not left. */
  readonly buffered: number
  send(frame: Buffer): void
  close(code: number, reason: string): void
}

/** What a connection reads from. All of it is shared with every other connection. */
export interface Source {
  readonly lines: RecentLines
  readonly board: StateBoard
  readonly inFlight: InFlight
}

/** No more is handed over while so much has not left. */
export const highWater = 256 * 1024
/** Edges may be missed; who lags sees the state. */
const maxNotices = 64

/** An edge, and the line that it comes behind. */
export interface Notice {
  bytes: Buffer
  after: number
}

export type Client = AttachRequest['client']

/** One reader of a session: a cursor into the log, and what it was sent of the rest. There is no queue. */
export class Connection {
  readonly client: Client
  /** Whether nobody looks at it. */
  isHidden = false
  readonly #source: Source
  readonly #sink: Sink
  readonly #wantsText: boolean
  /** The last line it was sent. */
  #seq: number
  #rev: number
  #notices: Notice[] = []
  /** How far it was sent what is in flight. A call with the id of an earlier one is another part. */
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

  /** Bytes that it was sent and that have not left. */
  get buffered(): number {
    return this.#sink.buffered
  }

  /** Something that is answered at once, whatever else waits. */
  reply(frame: ServerFrame): void {
    if (!this.#isClosed) this.#sink.send(Buffer.from(JSON.stringify(frame)))
  }

  notice(notice: Notice): void {
    this.#notices.push(notice)
    if (this.#notices.length > maxNotices) this.#notices.shift()
  }

  /** Hands over what there is, as long as it leaves: first the log with its edges, then the state, then text in flight. */
  pump(): void {
    while (!this.#isClosed && this.#sink.buffered <= highWater) {
      const frame = this.#nextNotice() ?? this.#nextLine() ?? this.#nextState() ?? this.#nextText()
      if (!frame) return
      this.#sink.send(frame)
    }
  }

  /** Whether it has been sent the whole log. */
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
      // So far behind that the next line is only in the log: it comes back with its cursor, and gets a snapshot.
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
