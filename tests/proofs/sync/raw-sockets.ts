import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** The server's ends of all sockets of this process, so that one can be made to take nothing. */
export class RawSockets {
  readonly #byPort = new Map<number, Socket>()
  readonly #take = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    const port = socket.remotePort
    if (port === undefined) return
    this.#byPort.set(port, socket)
    socket.once('close', () => {
      if (this.#byPort.get(port) === socket) this.#byPort.delete(port)
    })
  }

  constructor() {
    subscribe('net.server.socket', this.#take)
  }

  /** From here on what is written stays where it is, as for a reader that does not read. */
  stall(port: number | undefined): Socket | undefined {
    const socket = port === undefined ? undefined : this.#byPort.get(port)
    socket?.cork()
    return socket
  }

  close(): void {
    unsubscribe('net.server.socket', this.#take)
  }
}
