// The same models straight to `ws`, as many frames a second, and nothing in between.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { answerParent } from '../wire/answer-parent.ts'
import { measureLoop } from './measure-loop.ts'
import { readScript } from './read-script.ts'

/** Those of the product: with many sessions they come less often. */
const shortestTickMs = 33
const framesPerMs = 10
let tickMs = shortestTickMs

answerParent({
  start: async ({ scriptPort, sessions }: { scriptPort: number; sessions: number }) => {
    tickMs = Math.max(shortestTickMs, sessions / framesPerMs)
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false, clientTracking: false })
    server.on('connection', (socket, request) => {
      const index = Number(request.url?.slice(1))
      socket.on('message', () => void relay(socket, scriptPort, index))
      socket.on('error', () => undefined)
    })
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port }
  },
  measure: ({ ms }: { ms: number }) => measureLoop(ms),
})

async function relay(socket: WebSocket, scriptPort: number, index: number): Promise<void> {
  const item = `item-of-${index}`.padEnd(36, '-')
  let off = 0
  let pending = ''
  const tick = setInterval(() => {
    if (pending === '') return
    const data = { item, part: 0, kind: 'text', off, text: pending, run: item }
    socket.send(Buffer.from(JSON.stringify({ type: 'delta', data })), asText)
    off += pending.length
    pending = ''
  }, tickMs)
  for await (const text of readScript(scriptPort, index)) pending += text
  clearInterval(tick)
  socket.send(Buffer.from(JSON.stringify({ type: 'end', length: off + pending.length })), asText)
}

const asText = { binary: false }
