// What a node is measured beside: a model straight to NATS, and frames from NATS straight to `ws`.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { WebSocketServer, type WebSocket } from 'ws'
import { readScript } from '../sessions/read-script.ts'
import { measureLoop } from '../sessions/measure-loop.ts'
import { answerParent } from '../wire/answer-parent.ts'

const sockets = new Set<WebSocket>()
const asText = { binary: false }

interface Options {
  bus: string
  topic: string
  tickMs: number
  scriptPort: number
}

answerParent({
  start: async (options: Options) => {
    const { bus, topic } = options
    const connection = await connect({ servers: bus })
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false, clientTracking: false })
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.on('message', () => void relay(connection, options))
      socket.on('error', () => undefined)
    })
    await once(server, 'listening')
    connection.subscribe(topic, {
      callback: (_error, { data }) => {
        for (const socket of sockets) socket.send(data, asText)
      },
    })
    await connection.flush()
    return { port: (server.address() as AddressInfo).port }
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
})

/** The node that a client asks for it reads the model, and tells all nodes. */
async function relay(connection: NatsConnection, { topic, tickMs, scriptPort }: Options): Promise<void> {
  const item = 'item'.padEnd(36, '-')
  let off = 0
  let pending = ''
  const tick = setInterval(() => {
    if (pending === '') return
    const data = { item, part: 0, kind: 'text', off, text: pending, run: item }
    connection.publish(topic, JSON.stringify({ type: 'delta', data }))
    off += pending.length
    pending = ''
  }, tickMs)
  for await (const text of readScript(scriptPort, 0)) pending += text
  clearInterval(tick)
  connection.publish(topic, JSON.stringify({ type: 'end' }))
}
