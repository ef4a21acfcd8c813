// What the product is measured beside: `ws` and nothing else.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { answerParent } from '../wire/answer-parent.ts'
import { settledMemory } from '../wire/memory.ts'
import { monotonicMs } from '../wire/monotonic.ts'

const sockets = new Set<WebSocket>()

answerParent({
  start: async () => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false, clientTracking: false })
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.on('error', () => undefined)
    })
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port }
  },
  /** The same bytes to all. */
  send: ({ text }: { text: string }) => {
    const startMs = monotonicMs()
    const bytes = Buffer.from(text)
    for (const socket of sockets) socket.send(bytes, asText)
    return startMs
  },
  memory: settledMemory,
})

const asText = { binary: false }
