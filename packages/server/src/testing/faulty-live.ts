import { checkCommand, type AttachRequest, type ServerFrame, type StateKey } from '@tapetree/client/protocol'
import type { Sink } from '../live/connection.ts'
import { InFlight } from '../live/in-flight.ts'
import type { LiveSession } from '../live/live-session.ts'
import { RecentLines, type OutgoingLine } from '../live/recent-lines.ts'
import { StateBoard, type BoardValue } from '../live/state-values.ts'
import type { Fault } from './fault.ts'

/** Injects one bug into a live session, before it has observers. */
export function breakLive(live: LiveSession, fault: Fault): void {
  switch (fault) {
    case 'a line skipped for a slow client':
      return replace(live, 'lines', copied(live.lines, new SkippingLines()))
    case 'lines of unknown types not passed on':
      return replace(live, 'lines', copied(live.lines, new KnownLines()))
    case 'a change of state that one screen is not told':
      return replace(live, 'board', forgetful(live.board))
    case 'partial text left after its item is complete':
      return replace(live, 'inFlight', new LeftInFlight())
    case 'a resent command run twice':
      live.perform = async (id, client, { op, args }) => {
        const checked = checkCommand(op, args)
        if (!checked.ok) return { id, ok: false }
        try {
          await live.driver.perform(checked.command, { cmd: id, client })
        } catch {
          return { id, ok: false }
        }
        const seq = live.session.effectOf(id)
        return { id, ok: true, ...(seq !== undefined && { seq }) }
      }
      return
    case 'a cursor taken whose line differs':
      return changeAttach(live, { request: (request) => withRightCrc(request, live) })
    case 'a line sent twice after resume':
      return changeAttach(live, { request: (request) => oneLineEarlier(request, live) })
    case 'an await between reading the head and registering':
      return changeAttach(live, { sink: deafAtFirst })
    case 'a delta that splits a surrogate pair':
      return changeAttach(live, { sink: splitting })
    case 'a line is sent in other bytes than it is stored in':
      return changeAttach(live, { sink: rewording })
    case 'a socket that is filled without a bound':
      return changeAttach(live, { sink: boundless })
    case 'a stalled client that holds the others up':
      return changeAttach(live, { sink: inStep(live) })
    case 'a snapshot that lacks a line': {
      const { session } = live
      const snapshot = session.snapshot.bind(session)
      session.snapshot = async (options) => {
        const made = await snapshot(options)
        return { ...made, lines: made.lines.filter((_, index) => index !== made.lines.length - 2) }
      }
      return
    }
    case 'presence of who has left':
      live.presence.leave = () => undefined
      return
    default:
      return // a bug of the driver or of the store
  }
}

function replace<Part extends 'lines' | 'board' | 'inFlight'>(
  live: LiveSession,
  part: Part,
  value: LiveSession[Part],
): void {
  Object.defineProperty(live, part, { value })
}

function changeAttach(
  live: LiveSession,
  change: { request?: (request: AttachRequest) => AttachRequest; sink?: (sink: Sink) => Sink },
): void {
  const { request: changeRequest = same, sink: changeSink = same } = change
  const prepare = live.prepare.bind(live)
  const attach = live.attach.bind(live)
  live.prepare = (request) => prepare(changeRequest(request))
  live.attach = (request, sink, prepared) => attach(changeRequest(request), changeSink(sink), prepared)
}

function same<T>(value: T): T {
  return value
}

function withRightCrc(request: AttachRequest, { lines }: LiveSession): AttachRequest {
  const crc = request.after && lines.crcOf(request.after.seq)
  return request.after && crc !== undefined ? { ...request, after: { seq: request.after.seq, crc } } : request
}

function oneLineEarlier(request: AttachRequest, { lines }: LiveSession): AttachRequest {
  const { after } = request
  if (!after || lines.crcOf(after.seq) !== after.crc) return request
  const crc = lines.crcOf(after.seq - 1)
  return crc === undefined ? request : { ...request, after: { seq: after.seq - 1, crc } }
}

/** Copies lines into a list with a bug. */
function copied(from: RecentLines, to: RecentLines): RecentLines {
  for (let line = from.after(0); line; line = from.after(line.seq)) to.add(line)
  return to
}

class SkippingLines extends RecentLines {
  override after(seq: number): OutgoingLine | undefined {
    const line = super.after(seq)
    const next = line && super.after(line.seq)
    // Three lines behind is slow.
    const isSlow = next && super.after(next.seq)
    return isSlow ? next : line
  }
}

class KnownLines extends RecentLines {
  override add(line: OutgoingLine): void {
    if (!line.bytes.includes('"type":"from_the_future"')) super.add(line)
  }
}

class LeftInFlight extends InFlight {
  override land(): void {}
}

function forgetful(board: StateBoard): StateBoard {
  const made = new ForgetfulBoard()
  for (const [key, each] of Object.entries(board.all())) made.set(key as StateKey, each.value)
  return made
}

class ForgetfulBoard extends StateBoard {
  override newerThan(rev: number): BoardValue[] {
    return super.newerThan(rev).filter(({ bytes }) => !bytes.includes('"key":"queue"'))
  }
}

function deafAtFirst(inner: Sink): Sink {
  let isDeaf = false
  return {
    get buffered() {
      return inner.buffered
    },
    send(frame) {
      if (!isDeaf) inner.send(frame)
      if (!frame.includes('"type":"attached"')) return
      isDeaf = true
      setTimeout(() => (isDeaf = false), 5)
    },
    close: (code, reason) => inner.close(code, reason),
  }
}

function splitting(inner: Sink): Sink {
  return changing(inner, (frame) => {
    const parsed = JSON.parse(frame.toString()) as ServerFrame
    if (parsed.type !== 'delta') return [frame]
    const { off, text } = parsed.data
    const at = [...text].findIndex((character) => character.length === 2)
    if (at === -1) return [frame]
    const cut = [...text].slice(0, at).join('').length + 1
    return [
      { ...parsed.data, text: text.slice(0, cut) },
      { ...parsed.data, off: off + cut, text: text.slice(cut) },
    ].map((data) => Buffer.from(JSON.stringify({ type: 'delta', data })))
  })
}

function rewording(inner: Sink): Sink {
  return changing(inner, (frame) => {
    const isLine = frame.subarray(0, 7).toString() === '{"seq":'
    return [isLine ? Buffer.from(frame.toString().replace('"type"', '"type" ')) : frame]
  })
}

function changing(inner: Sink, change: (frame: Buffer) => Buffer[]): Sink {
  return {
    get buffered() {
      return inner.buffered
    },
    send(frame) {
      for (const each of change(frame)) inner.send(each)
    },
    close: (code, reason) => inner.close(code, reason),
  }
}

function boundless(inner: Sink): Sink {
  return { buffered: 0, send: (frame) => inner.send(frame), close: (code, reason) => inner.close(code, reason) }
}

/** While one client does not drain, no client receives anything. */
function inStep(live: LiveSession): (inner: Sink) => Sink {
  const all = new Set<Sink>()
  return (inner) => {
    all.add(inner)
    return {
      get buffered() {
        if (live.connections.size === 0) return inner.buffered
        return Math.max(...[...all].map(({ buffered }) => (buffered > 0 ? Infinity : 0)))
      },
      send: (frame) => inner.send(frame),
      close: (code, reason) => {
        all.delete(inner)
        inner.close(code, reason)
      },
    }
  }
}
