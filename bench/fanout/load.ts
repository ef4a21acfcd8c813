// The model of the session, and all of its clients, in a process of their own.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { answerParent } from '../wire/answer-parent.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import { RawClient } from '../wire/raw-client.ts'
import { attachFrame, wayIn } from '../wire/way-in.ts'
import { percentile } from '../../scripts/figure/percentile.ts'

export interface Place {
  port: number
  /** Absent at a bare node. */
  session?: { id: string; token: string }
}

export interface Seen {
  /** Frames with text, of all clients. */
  frames: number
  /** From the moment when the model said the oldest word of a frame. */
  delayP99Ms: number
}

/** Each word is the moment at which it was said. */
const wordLength = 16
const words = (atMs: number): string => atMs.toFixed(3).padStart(wordLength)

const clients: RawClient[] = []
let model = Promise.withResolvers<Socket>()
let ended = Promise.withResolvers<void>()
let delays: number[] | undefined
let stopTalking: (() => void) | undefined
let rounds = 0

answerParent({
  listen: async () => {
    const server = createServer((socket) => {
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('data', () => model.resolve(socket))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port }
  },
  join: async ({ places, count }: { places: readonly Place[]; count: number }) => {
    for (let index = 0; index < count; index++) clients.push(await join(places[index % places.length] as Place, index))
  },
  /** Lets the model of the session talk, a number of words each second. */
  talk: async ({ rate }: { rate: number }) => {
    model = Promise.withResolvers()
    ended = Promise.withResolvers()
    const prompt = { id: `go-${rounds++}`, op: 'prompt', args: { text: 'Go on.' } }
    clients[0]?.send(JSON.stringify({ type: 'cmd', data: prompt }))
    const socket = await model.promise
    const stop = pace(rate, () => socket.write(`${JSON.stringify({ text: words(monotonicMs()) })}\n`))
    stopTalking = () => {
      stop()
      socket.end()
    }
  },
  measure: async ({ ms }: { ms: number }): Promise<Seen> => {
    const taken: number[] = []
    delays = taken
    await new Promise((resolve) => setTimeout(resolve, ms))
    delays = undefined
    return { frames: taken.length, delayP99Ms: percentile(taken, 0.99) }
  },
  end: async () => {
    stopTalking?.()
    await ended.promise
  },
})

async function join({ port, session }: Place, index: number): Promise<RawClient> {
  const attached = Promise.withResolvers<void>()
  const client = await RawClient.dial({
    port,
    ...(session ? wayIn(session.id, session.token) : { path: '/' }),
    heard: (payload) => hear(payload, index, attached.resolve),
  })
  if (!session) return client
  client.send(attachFrame(`client-${index}`))
  await attached.promise
  return client
}

function hear(payload: Buffer, index: number, attached: () => void): void {
  const start = payload.toString('latin1', 0, 40)
  if (start.startsWith('{"type":"delta"')) {
    if (!delays) return
    const { data } = JSON.parse(payload.toString()) as { data: { text: string } }
    delays.push(monotonicMs() - Number(data.text.slice(0, wordLength)))
  } else if (start.startsWith('{"type":"attached"')) attached()
  else if (index === 0 && /"type":"(?:run_end|end)"/.test(start)) ended.resolve()
}

/** Calls as often each second as is asked for; returns a function that ends it. */
function pace(rate: number, call: () => void): () => void {
  const startMs = monotonicMs()
  let count = 0
  const timer = setInterval(() => {
    const due = (rate * (monotonicMs() - startMs)) / 1000
    for (; count < due; count++) call()
  }, 1)
  return () => clearInterval(timer)
}
