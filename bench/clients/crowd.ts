// Many clients in a process of their own. They count what they are told, and know when the last one had it.
import { answerParent } from '../wire/answer-parent.ts'
import { monotonicMs } from '../wire/monotonic.ts'
import { RawClient } from '../wire/raw-client.ts'
import { attachFrame, wayIn } from '../wire/way-in.ts'

export interface JoinCrowd {
  port: number
  count: number
  /** Without one, the server is a bare one and nobody attaches. */
  token?: string
  /** The clients are spread over them. */
  sessionIds: readonly string[]
}

export interface CrowdNow {
  open: number
  /** Lines that came, of all clients. */
  lines: number
  /** All other frames. */
  others: number
}

/** A server has only so much room for those that have not shown a token yet. */
const atOnce = 32
const linePrefix = Buffer.from('{"seq":')
const attachedPrefix = Buffer.from('{"type":"attached"')

const clients: RawClient[] = []
const now: CrowdNow = { open: 0, lines: 0, others: 0 }
let round: { missing: number; told: (atMs: number) => void } | undefined
let lastHad: Promise<number> | undefined

answerParent({
  join: async ({ port, count, token, sessionIds }: JoinCrowd) => {
    let next = 0
    const joinInTurn = async (): Promise<void> => {
      while (next < count) {
        const index = next++
        const sessionId = sessionIds[index % sessionIds.length] ?? ''
        clients.push(await join({ port, token, sessionId, index }))
        now.open++
      }
    }
    await Promise.all(Array.from({ length: atOnce }, joinInTurn))
  },
  /** From here on it is counted who has the next line. */
  arm: () => {
    const { promise, resolve } = Promise.withResolvers<number>()
    round = { missing: clients.length, told: resolve }
    lastHad = promise
  },
  /** When the last client had the line. */
  last: () => lastHad,
  now: () => now,
})

async function join(who: {
  port: number
  token: string | undefined
  sessionId: string
  index: number
}): Promise<RawClient> {
  const { port, token, sessionId, index } = who
  const { promise: attached, resolve, reject } = Promise.withResolvers<void>()
  const client = await RawClient.dial({
    port,
    ...(token === undefined ? { path: '/' } : wayIn(sessionId, token)),
    heard: (payload) => {
      if (startsWith(payload, linePrefix)) takeLine()
      else if (startsWith(payload, attachedPrefix)) resolve()
      else now.others++
    },
    closed: (code) => {
      now.open--
      reject(new Error(`The server closed with ${code}`))
    },
  })
  if (token === undefined) return client
  client.send(attachFrame(`client-${index}`))
  await attached
  return client
}

function takeLine(): void {
  now.lines++
  if (round && --round.missing === 0) round.told(monotonicMs())
}

function startsWith(payload: Buffer, prefix: Buffer): boolean {
  return payload.compare(prefix, 0, prefix.length, 0, Math.min(prefix.length, payload.length)) === 0
}
