import type { Clock } from '@tapetree/agent/run'
import type { Socket } from 'node:net'

export interface WaitingRoomLimits {
  /** Maximum number of unauthenticated sockets; beyond it, the oldest one is destroyed. */
  max: number
  /** How long a socket may take to send its request. */
  patienceMs: number
}

/** When a server restarts, its clients come back together, and each needs a round trip before it can send its token. */
const defaults: WaitingRoomLimits = { max: 1024, patienceMs: 10_000 }

interface Waiting {
  socket: Socket
  heard: AbortController
}

/**
 * Unauthenticated sockets. Evicts the oldest first: a client that opens many cannot lock others out, because
 * those authenticate at once.
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

  /** The request has arrived. The socket still counts, but its timeout ends. */
  heard(socket: Socket): void {
    this.#waiting.get(keyOf(socket))?.heard.abort('heard')
  }

  /** The socket has authenticated. */
  admit(socket: Socket): void {
    this.#leave(keyOf(socket))
  }

  /** Destroys sockets that have not authenticated in time. */
  close(): void {
    for (const { socket } of this.#waiting.values()) socket.destroy()
    for (const key of this.#waiting.keys()) this.#leave(key)
  }

  #leave(key: string): void {
    // A string as reason: an error with its stack would be kept as long as the socket.
    this.#waiting.get(key)?.heard.abort('gone')
    this.#waiting.delete(key)
  }
}

/** A socket and the TLS socket on top of it are two objects with one address. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
