import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { settledWithin, withDeadline } from '@tapetree/session/util/deadline'
import { WebSocket, type RawData } from 'ws'
import { decodeFrame, encodeFrame, PieceJoiner, PieceSplitter, type Frame } from './frames.ts'

/** A WebSocket that carries frames, notices a frozen peer, and is cut when too much waits to be sent. */
export class RelayChannel {
  /** Resolves with the code when the socket is closed. */
  readonly closed: Promise<number>
  /** Called with each frame. Frames without a listener are dropped. */
  onFrame: (frame: Frame) => void = () => undefined
  readonly #socket: WebSocket
  readonly #maxWaitingBytes: number
  readonly #splitter = new PieceSplitter(randomBytes(8))
  /** A stranger can send small frames only. */
  #joiner = new PieceJoiner(0)
  /** How many times in a row the timer has fired without a sign of the peer. */
  #silence = 0
  #wasHeard = false

  constructor(socket: WebSocket, maxWaitingBytes: number) {
    this.#socket = socket
    this.#maxWaitingBytes = maxWaitingBytes
    const timer = setInterval(() => this.#beat(), beatMs)
    this.closed = new Promise((resolve) => {
      socket.once('close', (code) => {
        clearInterval(timer)
        this.#joiner.clear()
        resolve(code)
      })
    })
    // An error is always followed by a close.
    socket.on('error', () => undefined)
    for (const sign of ['open', 'ping', 'pong']) socket.on(sign, () => (this.#wasHeard = true))
    socket.on('message', (data) => this.#receive(data))
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN
  }

  /** Frames may be large from now on. */
  trust(): void {
    this.#joiner = new PieceJoiner()
  }

  /** False if it was certainly not received. */
  send(header: Record<string, unknown>, body?: Uint8Array): boolean {
    if (!this.isOpen) return false
    const frame = encodeFrame(header, body)
    if (this.#socket.bufferedAmount + frame.length > this.#maxWaitingBytes) {
      this.cut()
      return false
    }
    for (const piece of this.#splitter.split(frame, pieceBytes)) this.#socket.send(piece)
    return true
  }

  /** Ends the connection without the consent of the peer. */
  cut(): void {
    this.#socket.terminate()
  }

  /** After it the peer knows that this end is closed, unless it does not answer. */
  async close(code = goingAway): Promise<void> {
    this.onFrame = () => undefined
    if (this.isOpen) this.#socket.close(code)
    else if (this.#socket.readyState === WebSocket.CONNECTING) this.cut()
    await settledWithin(this.closed, { ms: closeMs })
    this.cut()
    await this.closed
  }

  /** The next frame; rejects if the connection ends first. */
  async next(): Promise<Frame> {
    const { promise, resolve, reject } = Promise.withResolvers<Frame>()
    this.onFrame = (frame) => {
      this.onFrame = () => undefined
      resolve(frame)
    }
    void this.closed.then(() => reject(new Error('The connection ended.')))
    return promise
  }

  /** Counts beats instead of time: a process that was stopped itself must not blame its peers. */
  #beat(): void {
    this.#silence = this.#wasHeard ? 0 : this.#silence + 1
    this.#wasHeard = false
    if (this.#silence >= maxSilence) this.cut()
    else if (this.isOpen) this.#socket.ping()
  }

  #receive(data: RawData): void {
    this.#wasHeard = true
    const joined = Buffer.isBuffer(data) ? this.#joiner.push('', data) : undefined
    const frame = joined && decodeFrame(joined)
    if (frame) this.onFrame(frame)
  }
}

export interface Introduction {
  /** The node that dials. */
  from: string
  to: string
}

/** Both ends prove that they know the secret, which is not sent. Rejects with `WrongSecret` if the other does not. */
export async function dial(socket: WebSocket, channel: RelayChannel, { from, to }: Introduction, secret: string) {
  await withDeadline({ ms: dialMs, late: () => new Error('The peer does not answer.') }, async () => {
    const challenged = channel.next()
    // If the socket fails to open, that is the error to report.
    challenged.catch(() => undefined)
    await once(socket, 'open')
    const theirs = textIn(await challenged, 'nonce')
    const nonce = randomBytes(32).toString('hex')
    const facts = [theirs, nonce, from, to]
    channel.send({ from, to, nonce, proof: proofOf('dialer', facts, secret) })
    const welcome = await channel.next().catch(async (error: unknown) => {
      throw (await channel.closed) === wrongSecret ? new WrongSecret('It has another secret.') : error
    })
    if (!isSame(textIn(welcome, 'proof'), proofOf('listener', facts, secret))) {
      throw new WrongSecret('It has another secret.')
    }
  })
  channel.trust()
}

/** Returns the name of the node that dialed. Rejects with `WrongSecret` if it does not prove that it knows the secret. */
export async function admit(channel: RelayChannel, to: string, secret: string): Promise<string> {
  return withDeadline({ ms: dialMs, late: () => new Error('The peer does not answer.') }, async () => {
    const nonce = randomBytes(32).toString('hex')
    const answered = channel.next()
    channel.send({ nonce })
    const hello = await answered
    const from = textIn(hello, 'from')
    const facts = [nonce, textIn(hello, 'nonce'), from, textIn(hello, 'to')]
    if (!isSame(textIn(hello, 'proof'), proofOf('dialer', facts, secret))) {
      void channel.close(wrongSecret)
      throw new WrongSecret('It has another secret.')
    }
    if (textIn(hello, 'to') !== to || from === to) throw new Error('The peer looks for another node.')
    channel.trust()
    channel.send({ proof: proofOf('listener', facts, secret) })
    return from
  })
}

export class WrongSecret extends Error {
  override readonly name = 'WrongSecret'
}

function proofOf(role: 'dialer' | 'listener', facts: readonly string[], secret: string): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify(['tapetree bus', role, ...facts]))
    .digest('hex')
}

function isSame(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function textIn({ header }: Frame, name: string): string {
  const value = header[name]
  if (typeof value !== 'string') throw new Error(`The peer sent no ${name}.`)
  return value
}

const goingAway = 1001
const wrongSecret = 4401

const beatMs = 500
/** A frozen peer is noticed after five beats in which nothing came, so within 3 s. */
const maxSilence = 5
const dialMs = 2000
const closeMs = 1000

/** Small pieces let heartbeats through, and bound what a stranger can make a node keep. */
const pieceBytes = 64 * 1024

export const socketOptions = { perMessageDeflate: false, maxPayload: pieceBytes } as const
