import type { Clock } from '@tapetree/agent/run'
import { closeCodes } from '@tapetree/client/protocol'
import type { WebSocket } from 'ws'
import type { ToolHosts } from '../tool-hosts/tool-hosts.ts'

interface HostSocketOptions {
  toolHosts: ToolHosts
  tenant: string
  clock: Clock
  closed: () => void
}

/** A host that does not answer for this long is gone. Its calls continue there, and it connects again. */
const silenceMs = 15_000
const pingMs = 5000
/** A host that does not read what it is sent is cut off. */
const maxUnsentBytes = 64 * 1024 * 1024

/** The connection of a tool host. */
export function acceptHost(socket: WebSocket, { toolHosts, tenant, clock, closed }: HostSocketOptions): void {
  const over = new AbortController()
  let heardAt = clock.now()
  const { take, end } = toolHosts.accept(tenant, {
    send: (text) => {
      if (socket.bufferedAmount > maxUnsentBytes) socket.terminate()
      else socket.send(text)
    },
    close: (reason) => socket.close(closeCodes.replaced, reason.slice(0, 120)),
  })
  socket.on('message', (data, isBinary) => {
    heardAt = clock.now()
    if (!isBinary) take((data as Buffer).toString())
  })
  socket.on('pong', () => (heardAt = clock.now()))
  // An error is always followed by a close.
  socket.on('error', () => undefined)
  socket.once('close', () => {
    over.abort()
    end()
    closed()
  })
  void watch()

  async function watch(): Promise<void> {
    while (!over.signal.aborted) {
      await clock.wait(pingMs, over.signal).catch(() => undefined)
      if (over.signal.aborted) return
      if (clock.now() - heardAt > silenceMs) socket.terminate()
      else socket.ping()
    }
  }
}
