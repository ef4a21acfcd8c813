import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createConnection } from 'node:net'
import { settledWithin } from '@tapetree/session/util/deadline'
import { Listeners } from '@tapetree/session/util/listeners'
import { wait } from '@tapetree/session/util/wait'
import type * as Client from '@nats-io/transport-node'
import type { ConnectionOptions, Msg, NatsConnection, Subscription } from '@nats-io/transport-node'
import { emitWarning } from '../util/problem-error.ts'
import { decodeFrame, encodeFrame, PieceJoiner, PieceSplitter, type Frame } from './frames.ts'
import { closedError, OpenRequests, outcomeIn, outcomeOf } from './open-requests.ts'
import { requireSize, type SessionBus } from './session-bus.ts'
import type { MessageListener, RequestHandler, RequestOptions } from './session-bus.ts'
import { TopicListeners } from './topic-listeners.ts'

export interface NatsBusOptions {
  node: string
  /**
   * One server, or some of a cluster: `nats://host:4222`, with `user:password@` or `token@` before the host. `tls://`
   * refuses a server without TLS.
   */
  url: string | readonly string[]
  /** The first part of all subjects, so that several services can share a broker. Default: `tapetree`. */
  prefix?: string
  /** Certificates in PEM that have signed that of the server, unless the system trusts it. */
  ca?: string
  /** Called when the connection is lost or the server refuses something. Default: a warning of the process. */
  report?: (problem: string) => void
}

/** Connects nodes by a NATS server. Nothing is stored there. */
export class NatsBus implements SessionBus {
  readonly node: string
  readonly #servers: NatsServer[]
  readonly #prefix: string
  readonly #report: (problem: string) => void
  readonly #listeners = new TopicListeners()
  readonly #requests = new OpenRequests()
  readonly #gaps = new Listeners<void>(emitWarning)
  readonly #closing = new AbortController()
  readonly #inbox: string
  /** Where the answers go to requests that are being handled. */
  readonly #handling = new Set<string>()
  #handler: RequestHandler | undefined
  #link: NatsLink | undefined
  #nextLink = newLinkPromise()
  #reconnecting: Promise<void> | undefined
  #gapTimer: NodeJS.Timeout | undefined
  #closed: Promise<void> | undefined

  private constructor({ node, url, prefix = 'tapetree', ca, report = emitWarning }: NatsBusOptions) {
    if (!/^[\w-]+(\.[\w-]+)*$/.test(prefix)) throw new TypeError(`The prefix ${prefix} is no NATS subject.`)
    this.node = node
    this.#servers = [url].flat().map((each) => parseNatsUrl(each, ca))
    if (this.#servers.length === 0) throw new TypeError('The bus needs the URL of a NATS server.')
    this.#prefix = prefix
    this.#report = report
    this.#inbox = `${prefix}.a.${randomBytes(12).toString('hex')}`
  }

  /**
   * Rejects if a server refuses the connection, or if none answers for some seconds. Later on, the bus reconnects for as
   * long as it takes.
   */
  static async open(options: NatsBusOptions): Promise<NatsBus> {
    const bus = new NatsBus(options)
    const deadline = Date.now() + firstConnectMs
    for (;;) {
      try {
        bus.#use(await bus.#connect())
        return bus
      } catch (error) {
        if (!(error instanceof NoGreeting) || Date.now() > deadline) {
          await bus.close()
          const names = bus.#servers.map(({ name }) => name).join(', ')
          throw new Error(`The NATS server ${names} did not accept a connection: ${messageOf(error)}`, { cause: error })
        }
        await wait(retryMs)
      }
    }
  }

  publish(topic: string, message: Uint8Array): void {
    requireSize(message)
    this.#link?.send(this.#topicSubject(topic), encodeFrame({ from: this.node }, message))
  }

  async subscribe(topic: string, listener: MessageListener): Promise<() => void> {
    this.#requireOpen()
    const remove = this.#listeners.add(topic, listener)
    for (let isInForce = false; !isInForce;) {
      // After an interruption the new connection subscribes as well.
      const link = await this.#nextLink.promise
      this.#listen(link, topic)
      isInForce = await link.flush()
    }
    return () => {
      remove()
      if (!this.#listeners.has(topic)) this.#link?.unsubscribe(this.#topicSubject(topic))
    }
  }

  async request(node: string, message: Uint8Array, options: RequestOptions = {}): Promise<Uint8Array> {
    this.#requireOpen()
    requireSize(message)
    if (node === this.node) return this.#requestOwn(message, options)
    return this.#requests.start(node, options, (id) => {
      const frame = encodeFrame({ from: this.node }, message)
      const isSent = this.#link?.send(this.#nodeSubject(node), frame, `${this.#inbox}.${id}`)
      if (!isSent) this.#requests.settle(id, { type: 'unreachable' })
    })
  }

  answer(handler: RequestHandler): void {
    this.#handler = handler
  }

  onGap(listener: () => void): () => void {
    return this.#gaps.add(listener)
  }

  close(): Promise<void> {
    this.#closed ??= this.#close()
    return this.#closed
  }

  async #close(): Promise<void> {
    this.#closing.abort(closedError())
    this.#listeners.clear()
    this.#gaps.clear()
    clearTimeout(this.#gapTimer)
    this.#handler = undefined
    this.#requests.endAll('closed')
    this.#nextLink.reject(closedError())
    // It may have been resolved with a connection that is over now.
    this.#nextLink = newLinkPromise()
    this.#nextLink.reject(closedError())
    const link = this.#link
    this.#link = undefined
    for (const reply of this.#handling) link?.send(reply, encodeFrame({ type: 'no-answer' }))
    await link?.close()
    await this.#reconnecting
  }

  /** The server does not send messages back to the connection that they came from. */
  #requestOwn(message: Uint8Array, options: RequestOptions): Promise<Uint8Array> {
    const sent = new Uint8Array(message)
    return this.#requests.start(this.node, options, (id) => {
      queueMicrotask(() => {
        void outcomeOf(this.#handler, sent, this.node).then((outcome) => this.#requests.settle(id, outcome))
      })
    })
  }

  /** A connection with all subscriptions in force. Tries the servers in turn. */
  async #connect(): Promise<NatsLink> {
    let lastError: unknown
    for (const server of this.#servers) {
      try {
        const link = await NatsLink.open(server, this.#closing.signal)
        this.#subscribeAll(link)
        if (await link.flush()) return link
        throw new Error('The connection was lost at once.')
      } catch (error) {
        lastError = error
      }
    }
    // The next attempt begins with another server.
    this.#servers.push(...this.#servers.splice(0, 1))
    throw lastError
  }

  #subscribeAll(link: NatsLink): void {
    link.onRefused = (problem) => this.#report(`The NATS server ${link.server.name} refuses: ${problem}`)
    link.subscribe(this.#nodeSubject(this.node), (frame, reply) => void this.#handle(frame, reply))
    link.subscribe(`${this.#prefix}.g`, () => this.#reportGap())
    link.subscribe(`${this.#inbox}.*`, ({ header, body }, _, subject) => {
      const id = Number(subject.slice(this.#inbox.length + 1))
      this.#requests.settle(id, outcomeIn(header['type'], body))
    })
    link.onNoResponders = (subject) => {
      this.#requests.settle(Number(subject.slice(this.#inbox.length + 1)), { type: 'unreachable' })
    }
    for (const topic of this.#listeners.topics) this.#listen(link, topic)
  }

  #listen(link: NatsLink, topic: string): void {
    const subject = this.#topicSubject(topic)
    link.subscribe(subject, ({ header, body }) => {
      const { from } = header
      // It may have ended while this connection was made.
      if (!this.#listeners.has(topic)) link.unsubscribe(subject)
      else if (typeof from === 'string') this.#listeners.deliver(topic, body, from)
    })
  }

  async #handle({ header, body }: Frame, reply: string): Promise<void> {
    const { from } = header
    if (typeof from !== 'string' || this.#closing.signal.aborted) return
    this.#handling.add(reply)
    const outcome = await outcomeOf(this.#handler, body, from)
    this.#handling.delete(reply)
    const answer = outcome.type === 'answer' ? outcome.message : undefined
    this.#link?.send(reply, encodeFrame({ type: outcome.type }, answer))
  }

  #use(link: NatsLink): void {
    this.#link = link
    this.#nextLink.resolve(link)
    void link.lost.then((reason) => {
      if (this.#link !== link) return
      this.#report(`Lost the NATS server ${link.server.name} (${reason}). Messages are dropped until it is back.`)
      this.#link = undefined
      this.#nextLink = newLinkPromise()
      this.#requests.endAll('no-answer', (node) => node !== this.node)
      this.#reconnecting = this.#reconnect()
    })
  }

  async #reconnect(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      const link = await this.#connect().catch(() => undefined)
      if (link && signal.aborted) return link.close()
      if (link) {
        this.#use(link)
        // The others have missed what this node published in the meantime.
        link.send(`${this.#prefix}.g`, encodeFrame({ from: this.node }))
        return this.#reportGap()
      }
      await wait(retryMs * (0.5 + Math.random()), signal).catch(() => undefined)
    }
  }

  /** When a server restarts, all nodes report a gap: listeners are called once for all that come together. */
  #reportGap(): void {
    if (this.#closing.signal.aborted) return
    this.#gapTimer ??= setTimeout(() => {
      this.#gapTimer = undefined
      this.#gaps.notify()
    }, gapMs)
  }

  #topicSubject(topic: string): string {
    return `${this.#prefix}.t.${subjectToken(topic)}`
  }

  #nodeSubject(node: string): string {
    return `${this.#prefix}.n.${subjectToken(node)}`
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) throw closedError()
  }
}

type FrameListener = (frame: Frame, reply: string, subject: string) => void

/** One connection to a server. It does not reconnect by itself: that of the client waits forever for a frozen server. */
class NatsLink {
  readonly server: NatsServer
  /** Resolves with the reason when the connection is over. */
  readonly lost: Promise<string>
  onNoResponders: (subject: string) => void = () => undefined
  onRefused: (problem: string) => void = () => undefined
  readonly #connection: NatsConnection
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #joiner = new PieceJoiner()
  readonly #splitter = new PieceSplitter(randomBytes(8))
  readonly #lose: (reason: string) => void
  #isLost = false
  /** Bytes that were sent, and how many of them the server has certainly received. */
  #sentBytes = 0
  #receivedBytes = 0
  #isCounting = false

  private constructor(server: NatsServer, connection: NatsConnection) {
    this.server = server
    this.#connection = connection
    const { promise, resolve } = Promise.withResolvers<string>()
    this.lost = promise
    this.#lose = (reason) => {
      if (this.#isLost) return
      this.#isLost = true
      this.#joiner.clear()
      resolve(reason)
      void connection.close().catch(emitWarning)
    }
    void this.#watch()
  }

  static async open(server: NatsServer, signal: AbortSignal): Promise<NatsLink> {
    const { connect } = await loadClient()
    await probe(server, signal)
    return new NatsLink(server, await connect({ ...server.options, ...clientOptions }))
  }

  /** Does nothing if there is a subscription for this subject. */
  subscribe(subject: string, listener: FrameListener): void {
    if (this.#isLost || this.#subscriptions.has(subject)) return
    // What a callback throws would end the client.
    const callback = (error: Error | null, message: Msg): void => {
      try {
        if (error) this.onRefused(messageOf(error))
        else this.#receive(message, listener)
      } catch (thrown) {
        emitWarning(thrown)
      }
    }
    this.#subscriptions.set(subject, this.#connection.subscribe(subject, { callback }))
  }

  unsubscribe(subject: string): void {
    if (!this.#isLost) this.#subscriptions.get(subject)?.unsubscribe()
    this.#subscriptions.delete(subject)
  }

  /** False if nothing was sent, or not all of it. */
  send(subject: string, frame: Uint8Array, reply?: string): boolean {
    const maxBytes = this.#connection.info?.max_payload ?? defaultMaxPayload
    for (const piece of this.#splitter.split(frame, maxBytes)) {
      if (this.#isLost) return false
      this.#connection.publish(subject, piece, reply === undefined ? undefined : { reply })
      this.#sentBytes += piece.length
    }
    this.#countReceived()
    return true
  }

  /** Resolves when the server has processed all that was sent before; false if the connection was lost. */
  async flush(): Promise<boolean> {
    if (this.#isLost) return false
    // The client leaves it open when the connection ends.
    const isFlushed = this.#connection.flush().then(
      () => true,
      () => false,
    )
    return Promise.race([isFlushed, this.lost.then(() => false)])
  }

  /** After it, requests to this node find no responder. */
  async close(): Promise<void> {
    for (const subject of this.#subscriptions.keys()) this.unsubscribe(subject)
    await settledWithin(this.flush(), { ms: pingMs })
    this.#lose('closed')
    await settledWithin(this.#connection.closed(), { ms: pingMs })
  }

  /** A connection on which too much waits is cut: memory is limited, and the others learn of the gap. */
  #countReceived(): void {
    const waiting = this.#sentBytes - this.#receivedBytes
    if (waiting > maxWaitingBytes) return this.#lose(`${waiting} bytes wait to be sent`)
    if (this.#isCounting || waiting < countBytes) return
    this.#isCounting = true
    const sent = this.#sentBytes
    void this.flush().then(() => {
      this.#isCounting = false
      this.#receivedBytes = sent
      if (!this.#isLost) this.#countReceived()
    })
  }

  #receive(message: Msg, listener: FrameListener): void {
    if (this.#isLost) return
    if (message.headers?.code === 503) return this.onNoResponders(message.subject)
    const joined = this.#joiner.push(message.subject, message.data)
    const frame = joined && decodeFrame(joined)
    if (frame) listener(frame, message.reply ?? '', message.subject)
  }

  async #watch(): Promise<void> {
    void this.#connection.closed().then((error) => this.#lose(error ? messageOf(error) : 'closed'))
    for await (const status of this.#connection.status()) {
      if (status.type === 'staleConnection') this.#lose('it does not answer')
      if (status.type === 'disconnect') this.#lose('the connection ended')
      if (status.type === 'error') this.onRefused(messageOf(status.error))
    }
  }
}

interface NatsServer {
  /** Host and port: the URL may hold a password. */
  name: string
  host: string
  port: number
  /** In our own words: whoever does not use NATS need not have its client, nor its types. */
  options: { servers: string; user?: string; pass?: string; token?: string; tls?: { ca?: string } }
}

/** @internal Exported for its test. */
export function parseNatsUrl(text: string, ca?: string): NatsServer {
  const url = URL.parse(text)
  if (!url || !/^(nats|tls):$/.test(url.protocol) || url.hostname === '') {
    throw new TypeError('The URL of a NATS server has the form nats://host:4222 or tls://host:4222.')
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = Number(url.port || 4222)
  const name = `${url.hostname}:${port}`
  const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  const credentials = user === '' ? {} : url.password === '' ? { token: user } : { user, pass }
  const tls = { ...(ca !== undefined && { ca }) }
  return {
    name,
    host,
    port,
    options: { servers: name, ...credentials, ...((url.protocol === 'tls:' || ca !== undefined) && { tls }) },
  }
}

/**
 * A part of a subject that no other name gives. Letters, digits and hyphens stay; any other UTF-16 unit becomes `_` with
 * four digits. A long name becomes its hash.
 *
 * @internal Exported for its test.
 */
export function subjectToken(name: string): string {
  if (name === '') return '_'
  const token = name.replaceAll(/[^A-Za-z0-9-]/g, (unit) => `_${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  if (token.length <= 200) return token
  return `__${createHash('sha256').update(Buffer.from(name, 'utf16le')).digest('hex')}`
}

/** Waits for the first bytes of the server: the client keeps its socket open if a frozen server does not greet it. */
async function probe({ host, port }: NatsServer, signal: AbortSignal): Promise<void> {
  const socket = createConnection(port, host)
  try {
    await once(socket, 'data', { signal: AbortSignal.any([signal, AbortSignal.timeout(pingMs)]) })
  } catch (cause) {
    const { code } = cause as { code?: string }
    throw new NoGreeting(code === 'ABORT_ERR' ? 'it does not answer' : messageOf(cause), { cause })
  } finally {
    // A failure after the first one has no listener.
    socket.on('error', () => undefined)
    socket.destroy()
  }
}

/** No NATS server answers at the address. */
class NoGreeting extends Error {}

async function loadClient(): Promise<typeof Client> {
  try {
    return await import('@nats-io/transport-node')
  } catch (cause) {
    throw new Error('A NATS server needs the package @nats-io/transport-node. Install it beside @tapetree/server.', {
      cause,
    })
  }
}

function newLinkPromise(): PromiseWithResolvers<NatsLink> {
  const next = Promise.withResolvers<NatsLink>()
  // It is rejected when the bus closes, whether anything waits for it or not.
  next.promise.catch(() => undefined)
  return next
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const pingMs = 1000
const clientOptions = {
  pingInterval: pingMs,
  maxPingOut: 2,
  timeout: pingMs,
  noEcho: true,
  reconnect: false,
  ignoreClusterUpdates: true,
} satisfies ConnectionOptions

const retryMs = 250
const firstConnectMs = 5000
const gapMs = 50
const defaultMaxPayload = 1024 * 1024
/** Bytes after which the server is asked how much it has received, and the most that may wait. */
const countBytes = 1024 * 1024
const maxWaitingBytes = 128 * 1024 * 1024
