import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { highWater, type Sink } from '../live/connection.ts'

/** Sends frames to a WebSocket. Reports when there is room again, and whether data leaves at all. */
export class SocketSink implements Sink {
  readonly #socket: WebSocket
  readonly #stream: Duplex
  readonly #drained: () => void
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
