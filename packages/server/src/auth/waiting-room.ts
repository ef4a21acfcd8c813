import type { Clock } from '@tapetree/agent'
import type { Socket } from 'node:net'

export interface WaitingRoomLimits {
  /** Sockets that have shown no token; one more, and the one that waits longest has to go. */
  max: number
  /** How long a socket may take to say what it wants. */
  patienceMs: number
}

const defaults: WaitingRoomLimits = { max: 64, patienceMs: 10_000 }

interface Waiting {
  socket: Socket
  heard: AbortController
}

/**
 * Sockets that nobody knows yet. Who waits longest goes first: whoever holds many open keeps nobody else out, because one that has
 * a token shows it at once.
 */
export class WaitingRoom {
  readonly #clock: Clock
  readonly #limits: WaitingRoomLimits
  readonly #waiting = new Map<string, Waiting>()

  constructor(clock: Clock, limits: Partial<WaitingRoomLimits> = {}) {
    this.#clock = clock
    this.#limits = { ...defaults, ...limits }
  }

  get size(): number {
    return this.#waiting.size
  }

  enter(socket: Socket): void {
    const key = keyOf(socket)
    const waiting: Waiting = { socket, heard: new AbortController() }
    this.#waiting.set(key, waiting)
    socket.once('close', () => {
      if (this.#waiting.get(key) === waiting) this.#leave(key)
    })
    this.#clock.wait(this.#limits.patienceMs, waiting.heard.signal).then(
      () => socket.destroy(),
      () => undefined,
    )
    const [oldest] = this.#waiting.values()
    if (this.#waiting.size > this.#limits.max) oldest?.socket.destroy()
  }

  /** It has said what it wants. It still counts, but may take its time over the answer. */
  heard(socket: Socket): void {
    this.#waiting.get(keyOf(socket))?.heard.abort('heard')
  }

  /** It has shown a token. */
  admit(socket: Socket): void {
    this.#leave(keyOf(socket))
  }

  /** Whoever has not come in by now does not any more. */
  close(): void {
    for (const { socket } of this.#waiting.values()) socket.destroy()
    for (const key of this.#waiting.keys()) this.#leave(key)
  }

  #leave(key: string): void {
    // With a word for a reason: an error with its stack would be kept as long as the socket.
    this.#waiting.get(key)?.heard.abort('gone')
    this.#waiting.delete(key)
  }
}

/** A socket and the TLS one on top of it are two objects with one address. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
