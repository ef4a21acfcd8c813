// The models that are read from, and one screen for each session, in a process of their own.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { answerParent } from '../wire/answer-parent.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import type { ProductAddress } from '../wire/product.ts'
import { RawClient } from '../wire/raw-client.ts'
import { attachFrame, wayIn } from '../wire/way-in.ts'

export interface LoadNow {
  atMs: number
  /** Deltas that left, of all models. */
  sent: number
  /** Deltas that were seen, on all screens. */
  seen: number
}

export interface LoadEnd {
  /** Characters that the models said, and those that are in the answers. */
  said: number
  kept: number
}

const words = Array.from({ length: 1000 }, (_, index) => ` word${String(index).padStart(3, '0')}`)
const wordLength = 8
const lines = words.map((text) => `${JSON.stringify({ text })}\n`)
const sendMs = 5

const screens: { client: RawClient; prompt: (number: number) => string }[] = []
let models: Socket[] = []
let allModels = Promise.withResolvers<void>()
let allEnded = Promise.withResolvers<void>()
let ended = 0
let sent = 0
let seenCharacters = 0
let kept = 0
let rounds = 0
let pace: NodeJS.Timeout | undefined

answerParent({
  listen: async () => {
    const server = createServer((socket) => {
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.once('data', () => {
        models.push(socket)
        if (models.length === screens.length) allModels.resolve()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { port: (server.address() as AddressInfo).port }
  },
  watchProduct: async ({ port, token, sessionIds }: ProductAddress) => {
    for (const [index, sessionId] of sessionIds.entries()) {
      const attached = Promise.withResolvers<void>()
      const client = await RawClient.dial({
        port,
        ...wayIn(sessionId, token),
        heard: (payload) => hear(payload, attached.resolve),
      })
      client.send(attachFrame(`screen-${index}`))
      await attached.promise
      const prompt = (number: number): string =>
        JSON.stringify({ type: 'cmd', data: { id: `go-${index}-${number}`, op: 'prompt', args: { text: 'Go on.' } } })
      screens.push({ client, prompt })
    }
  },
  watchBare: async ({ port, sessions }: { port: number; sessions: number }) => {
    for (let index = 0; index < sessions; index++) {
      screens.push({ client: await RawClient.dial({ port, path: `/${index}`, heard: hear }), prompt: () => 'go' })
    }
  },
  /** Prompts every session, and lets its model talk: so many deltas a second of all together. */
  begin: async ({ rate }: { rate: number }) => {
    models = []
    sent = seenCharacters = kept = ended = 0
    allModels = Promise.withResolvers()
    allEnded = Promise.withResolvers()
    rounds++
    for (const { client, prompt } of screens) client.send(prompt(rounds))
    await allModels.promise
    talk(rate)
  },
  now: (): LoadNow => ({ atMs: monotonicMs(), sent, seen: seenCharacters / wordLength }),
  /** Every model comes to its end; waits until every answer has. */
  end: async (): Promise<LoadEnd> => {
    clearInterval(pace)
    for (const model of models) model.end()
    await allEnded.promise
    return { said: sent * wordLength, kept }
  },
})

/** In turn over all models, each delta in a write of its own, as providers send them. */
function talk(rate: number): void {
  const startMs = monotonicMs()
  pace = setInterval(() => {
    const due = Math.floor((rate * (monotonicMs() - startMs)) / 1000)
    while (sent < due) {
      models[sent % models.length]?.write(lines[sent % lines.length] as string)
      sent++
    }
  }, sendMs)
}

function hear(payload: Buffer, attached?: unknown): void {
  const type = payload.toString('latin1', 0, 40)
  if (type.startsWith('{"type":"delta"')) {
    const { data } = JSON.parse(payload.toString()) as { data: { text: string } }
    seenCharacters += data.text.length
  } else if (type.startsWith('{"type":"end"')) {
    kept += (JSON.parse(payload.toString()) as { length: number }).length
    end()
  } else if (type.startsWith('{"type":"attached"')) {
    if (typeof attached === 'function') attached()
  } else if (type.includes('"type":"message"')) {
    keep(payload.toString())
  } else if (type.includes('"type":"run_end"')) {
    end()
  }
}

function keep(line: string): void {
  const { message } = JSON.parse(line) as { message: { role: string; content: { text?: { content: string } }[] } }
  if (message.role !== 'assistant') return
  for (const { text } of message.content) kept += text?.content.length ?? 0
}

function end(): void {
  if (++ended === screens.length) allEnded.resolve()
}
