import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { settledWithin } from '@tapetree/session/util/deadline'
import { Listeners } from '@tapetree/session/util/listeners'
import { WebSocket, WebSocketServer } from 'ws'
import { emitWarning } from '../util/problem-error.ts'
import type { Frame } from './frames.ts'
import { closedError, OpenRequests, outcomeIn, outcomeOf } from './open-requests.ts'
import { admit, dial, RelayChannel, socketOptions, WrongSecret } from './relay-channel.ts'
import { requireSize, type SessionBus } from './session-bus.ts'
import type { BusDoor, MessageListener, RequestHandler, RequestOptions } from './session-bus.ts'
import { TopicListeners } from './topic-listeners.ts'

/** Where a node accepts the connections of others, below its URL. */
export const busPath = '/internal/bus'

export interface RelayPeer {
  node: string
  /** The address of its HTTP server: `http:` or `https:`. */
  url: string
}

export interface RelayBusOptions {
  node: string
  /** All nodes of the service at the moment, with this one or without it. Called every second. */
  peers: () => Promise<readonly RelayPeer[]>
  /** The same for all nodes, with 32 characters at least. It is never sent. Use `https:` if others can read the network. */
  secret: string
  /** Certificates in PEM that have signed those of the peers, unless the system trusts them. */
  ca?: string
  /** A peer for which more bytes wait to be sent is cut off, and connects again. Default: 64 MiB. */
  maxWaitingBytes?: number
  /** Called when peers cannot be listed or do not know the secret. Default: a warning of the process. */
  report?: (problem: string) => void
}

/**
 * Connects nodes with each other, without a broker. Every node dials every other one, and receives on the connections that
 * it has dialed: messages on its topics, and answers to its requests. So a node knows by itself when it has missed
 * something.
 */
export class RelayBus implements SessionBus {
  readonly node: string
  readonly door: BusDoor = {
    path: busPath,
    upgrade: (request, socket, head) => this.upgrade(request, socket, head),
    connect: () => this.connect(),
  }
  readonly #options: RelayBusOptions
  readonly #report: (problem: string) => void
  readonly #server = new WebSocketServer({ ...socketOptions, noServer: true, clientTracking: false })
  readonly #listeners = new TopicListeners()
  readonly #requests = new OpenRequests()
  readonly #gaps = new Listeners<void>(emitWarning)
  readonly #peers = new Map<string, Peer>()
  readonly #followers = new Map<string, Follower>()
  readonly #strangers = new Set<RelayChannel>()
  readonly #closing = new AbortController()
  #handler: RequestHandler | undefined
  #polling: Promise<void> | undefined
  #pollTimer: NodeJS.Timeout | undefined
  #lastProblem = ''
  #closed: Promise<void> | undefined

  constructor(options: RelayBusOptions) {
    if (options.secret.length < 32) throw new TypeError('The secret of the bus has fewer than 32 characters.')
    this.node = options.node
    this.#options = options
    this.#report = options.report ?? emitWarning
  }

  /**
   * Connects to the others, now and whenever it has to. Resolves when every peer that can be reached is connected. Call it
   * when upgrade requests reach this bus, because the others connect to it as well.
   */
  async connect(): Promise<void> {
    await this.#poll()
    await Promise.all([...this.#peers.values()].flatMap(({ dialing }) => dialing ?? []))
  }

  /** The nodes whose messages this one receives at the moment. */
  get connected(): string[] {
    return [...this.#peers.values()].filter(({ link }) => link?.isUp).map(({ node }) => node)
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Takes an upgrade request for `busPath` from an HTTP server. The peer proves that it knows the secret afterwards. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    if (this.#isClosed || this.#strangers.size >= maxStrangers) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n', () => socket.destroy())
      return
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => void this.#admit(webSocket))
  }

  publish(topic: string, message: Uint8Array): void {
    requireSize(message)
    if (this.#isClosed) return
    for (const [node, { topics, channel }] of this.#followers) {
      if (!topics.has(topic) || !channel.isOpen) continue
      const isSent = channel.send({ type: 'message', topic }, message)
      if (!isSent) this.#report(`The node ${node} was cut off, because it receives too slowly.`)
    }
  }

  async subscribe(topic: string, listener: MessageListener): Promise<() => void> {
    this.#requireOpen()
    const remove = this.#listeners.add(topic, listener)
    await Promise.all([...this.#peers.values()].flatMap(({ link }) => link?.subscribe([topic]) ?? []))
    this.#requireOpen()
    return () => {
      remove()
      if (this.#listeners.has(topic)) return
      for (const { link } of this.#peers.values()) link?.channel.send({ type: 'unsubscribe', topic })
    }
  }

  async request(node: string, message: Uint8Array, options: RequestOptions = {}): Promise<Uint8Array> {
    this.#requireOpen()
    requireSize(message)
    const sent = new Uint8Array(message)
    return this.#requests.start(node, options, (id) => {
      if (node === this.node) queueMicrotask(() => void this.#answerOwn(id, sent))
      else if (!this.#send(node, id, sent)) void this.#sendLater(node, id, sent)
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
    this.#closing.abort()
    clearTimeout(this.#pollTimer)
    this.#listeners.clear()
    this.#gaps.clear()
    this.#handler = undefined
    this.#requests.endAll('closed')
    const peers = [...this.#peers.values()]
    const channels = [
      ...peers.flatMap(({ channel }) => channel ?? []),
      ...[...this.#followers.values()].map(({ channel }) => channel),
      ...this.#strangers,
    ]
    await Promise.all(channels.map((channel) => channel.close()))
    await Promise.all(peers.flatMap(({ dialing }) => dialing ?? []))
    this.#server.close()
  }

  async #answerOwn(id: number, message: Uint8Array): Promise<void> {
    this.#requests.settle(id, await outcomeOf(this.#handler, message, this.node))
  }

  #send(node: string, id: number, message: Uint8Array): boolean {
    return this.#peers.get(node)?.link?.channel.send({ type: 'request', id }, message) ?? false
  }

  /** The node may have joined a moment ago, or be about to return. */
  async #sendLater(node: string, id: number, message: Uint8Array): Promise<void> {
    await this.#poll()
    await this.#peers.get(node)?.dialing
    if (!this.#requests.has(id)) return
    if (!this.#send(node, id, message)) this.#requests.settle(id, { type: 'unreachable' })
  }

  /** Dials the peers that are not connected, and leaves those that are gone from the list. */
  #poll(): Promise<void> {
    this.#polling ??= this.#pollOnce().finally(() => {
      this.#polling = undefined
      clearTimeout(this.#pollTimer)
      if (!this.#isClosed) this.#pollTimer = setTimeout(() => void this.#poll(), pollMs)
    })
    return this.#polling
  }

  async #pollOnce(): Promise<void> {
    const listed = await this.#listPeers()
    if (!listed || this.#isClosed) return
    for (const peer of this.#peers.values()) {
      if (listed.get(peer.node) === peer.url) continue
      this.#peers.delete(peer.node)
      this.#requests.endAll('no-answer', (node) => node === peer.node)
      void peer.channel?.close()
    }
    for (const [node, url] of listed) {
      const peer = this.#peers.get(node) ?? { node, url }
      this.#peers.set(node, peer)
      if (!peer.link) peer.dialing ??= this.#dial(peer).finally(() => (peer.dialing = undefined))
    }
  }

  async #listPeers(): Promise<Map<string, string> | undefined> {
    let listed: Map<string, string> | undefined
    let problem = 'it takes too long'
    const listing = (async () => this.#options.peers())().then(
      (peers) => (listed = new Map(peers.map(({ node, url }) => [node, url]))),
      (error: unknown) => (problem = error instanceof Error ? error.message : String(error)),
    )
    await settledWithin(listing, { ms: listMs, signal: this.#closing.signal })
    listed?.delete(this.node)
    if (!listed) this.#reportOnce(`The other nodes cannot be listed: ${problem}`)
    return listed
  }

  async #dial(peer: Peer): Promise<void> {
    const { secret, ca, maxWaitingBytes = defaultMaxWaitingBytes } = this.#options
    try {
      const tls = ca === undefined ? {} : { ca }
      const socket = new WebSocket(socketUrl(peer.url), { ...socketOptions, ...tls, handshakeTimeout: pollMs })
      const channel = new RelayChannel(socket, maxWaitingBytes)
      peer.channel = channel
      try {
        await dial(socket, channel, { from: this.node, to: peer.node }, secret)
      } catch (error) {
        channel.cut()
        throw error
      }
      await this.#join(peer, channel)
    } catch (error) {
      // A node that is gone stays in the list for a while.
      if (error instanceof WrongSecret || error instanceof SyntaxError || error instanceof TypeError) {
        this.#reportOnce(`The node ${peer.node} cannot be joined: ${error.message}`)
      } else if (isUntrusted(error)) {
        this.#reportOnce(`The node ${peer.node} cannot be joined, its certificate is not trusted: ${error.message}`)
      }
    }
  }

  async #join(peer: Peer, channel: RelayChannel): Promise<void> {
    // It may have left the list in the meantime.
    if (this.#isClosed || this.#peers.get(peer.node) !== peer) return channel.cut()
    const link = new Link(channel, (frame) => this.#receive(peer.node, frame))
    peer.link = link
    void channel.closed.then(() => {
      peer.link = undefined
      if (this.#isClosed || this.#peers.get(peer.node) !== peer) return
      this.#requests.endAll('no-answer', (node) => node === peer.node)
      void this.#poll()
    })
    await link.subscribe(this.#listeners.topics)
    if (!channel.isOpen) return
    link.isUp = true
    this.#lastProblem = ''
    // What the peer published before is lost.
    this.#gaps.notify()
  }

  #receive(from: string, { header, body }: Frame): void {
    const { type, topic, id } = header
    if (type === 'message' && typeof topic === 'string') this.#listeners.deliver(topic, body, from)
    if (type === 'outcome' && typeof id === 'number') this.#requests.settle(id, outcomeIn(header['outcome'], body))
  }

  async #admit(socket: WebSocket): Promise<void> {
    const { secret, maxWaitingBytes = defaultMaxWaitingBytes } = this.#options
    const channel = new RelayChannel(socket, maxWaitingBytes)
    this.#strangers.add(channel)
    try {
      const from = await admit(channel, this.node, secret)
      this.#follow(from, channel)
    } catch (error) {
      if (!(error instanceof WrongSecret)) channel.cut()
      else this.#reportOnce('A connection to the bus was refused: it has another secret.')
    } finally {
      this.#strangers.delete(channel)
    }
  }

  #follow(node: string, channel: RelayChannel): void {
    if (this.#isClosed) return channel.cut()
    const follower: Follower = { channel, topics: new Set() }
    // Its earlier connection is over, even if this end has not noticed yet.
    this.#followers.get(node)?.channel.cut()
    this.#followers.set(node, follower)
    channel.onFrame = (frame) => this.#serve(node, follower, frame)
    void channel.closed.then(() => {
      if (this.#followers.get(node) === follower) this.#followers.delete(node)
    })
    if (!this.#peers.get(node)?.link) void this.#poll()
  }

  #serve(from: string, { channel, topics }: Follower, { header, body }: Frame): void {
    const { type, topic, id } = header
    if (type === 'subscribe' && Array.isArray(header['topics'])) {
      for (const each of header['topics']) topics.add(String(each))
      channel.send({ type: 'subscribed', id })
    }
    if (type === 'unsubscribe' && typeof topic === 'string') topics.delete(topic)
    if (type === 'request') {
      void outcomeOf(this.#handler, body, from).then((outcome) => {
        const answer = outcome.type === 'answer' ? outcome.message : undefined
        channel.send({ type: 'outcome', id, outcome: outcome.type }, answer)
      })
    }
  }

  /** Every attempt fails in the same way. */
  #reportOnce(problem: string): void {
    if (problem === this.#lastProblem || this.#isClosed) return
    this.#lastProblem = problem
    this.#report(problem)
  }

  #requireOpen(): void {
    if (this.#isClosed) throw closedError()
  }
}

interface Peer extends RelayPeer {
  dialing?: Promise<void> | undefined
  /** The last connection to it. */
  channel?: RelayChannel
  /** The connection, after both ends have proved that they know the secret. */
  link?: Link | undefined
}

/** A node that receives from this one. */
interface Follower {
  channel: RelayChannel
  topics: Set<string>
}

/** A connection on which this node receives. */
class Link {
  readonly channel: RelayChannel
  /** All subscriptions are in force. */
  isUp = false
  readonly #subscribing = new Map<number, () => void>()
  #lastId = 0

  constructor(channel: RelayChannel, onFrame: (frame: Frame) => void) {
    this.channel = channel
    channel.onFrame = (frame) => {
      if (frame.header['type'] === 'subscribed') this.#subscribing.get(Number(frame.header['id']))?.()
      else onFrame(frame)
    }
    void channel.closed.then(() => {
      this.isUp = false
      for (const resolve of this.#subscribing.values()) resolve()
    })
  }

  /** Resolves when the peer knows these topics, or when the connection has ended. */
  async subscribe(topics: readonly string[]): Promise<void> {
    const id = (this.#lastId += 1)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#subscribing.set(id, resolve)
    if (this.channel.send({ type: 'subscribe', id, topics })) await promise
    this.#subscribing.delete(id)
  }
}

function socketUrl(text: string): URL {
  const url = new URL(text)
  url.protocol = url.protocol.replace(/^http/, 'ws')
  url.pathname = `${url.pathname.replace(/\/$/, '')}${busPath}`
  return url
}

const pollMs = 1000
const listMs = 5000
/** Connections that have not proved to know the secret. */
const maxStrangers = 64
const defaultMaxWaitingBytes = 64 * 1024 * 1024

/** Whether a TLS connection failed because of the certificate of the other end. */
function isUntrusted(error: unknown): error is Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /CERT|^UNABLE_TO_/.test(code)
}
