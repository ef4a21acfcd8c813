import { OpenRequests, closedError, outcomeOf } from './open-requests.ts'
import { requireSize, type SessionBus } from './session-bus.ts'
import type { MessageListener, RequestHandler, RequestOptions } from './session-bus.ts'
import { TopicListeners } from './topic-listeners.ts'

/** Connects nodes in one process, for tests and for applications that run several servers. */
export class LocalNetwork {
  readonly #nodes = new Map<string, LocalBus>()

  /** Throws if a node of this name is connected. */
  join(node: string): SessionBus {
    if (this.#nodes.has(node)) throw new Error(`A node named ${node} is connected already.`)
    const bus = new LocalBus(node, {
      others: () => [...this.#nodes.values()].filter((other) => other !== bus),
      find: (name) => this.#nodes.get(name),
      leave: () => this.#nodes.delete(node),
    })
    this.#nodes.set(node, bus)
    return bus
  }
}

interface Network {
  others: () => LocalBus[]
  find: (node: string) => LocalBus | undefined
  leave: () => void
}

class LocalBus implements SessionBus {
  readonly node: string
  readonly #network: Network
  readonly #listeners = new TopicListeners()
  readonly #requests = new OpenRequests()
  #handler: RequestHandler | undefined
  #isClosed = false

  constructor(node: string, network: Network) {
    this.node = node
    this.#network = network
  }

  publish(topic: string, message: Uint8Array): void {
    requireSize(message)
    if (this.#isClosed) return
    const others = this.#network.others().filter((other) => other.#listeners.has(topic))
    if (others.length === 0) return
    const sent = new Uint8Array(message)
    // Later, as over a network: a listener never runs inside of the publisher.
    queueMicrotask(() => {
      for (const other of others) other.#listeners.deliver(topic, sent, this.node)
    })
  }

  async subscribe(topic: string, listener: MessageListener): Promise<() => void> {
    this.#requireOpen()
    return this.#listeners.add(topic, listener)
  }

  async request(node: string, message: Uint8Array, options: RequestOptions = {}): Promise<Uint8Array> {
    this.#requireOpen()
    requireSize(message)
    const sent = new Uint8Array(message)
    return this.#requests.start(node, options, (id) => {
      queueMicrotask(() => {
        const other = this.#network.find(node)
        void outcomeOf(other && other.#handler, sent, this.node).then((outcome) => this.#requests.settle(id, outcome))
      })
    })
  }

  answer(handler: RequestHandler): void {
    this.#handler = handler
  }

  /** Nothing is lost inside of a process. */
  onGap(): () => void {
    return () => undefined
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#listeners.clear()
    this.#handler = undefined
    this.#network.leave()
    this.#requests.endAll('closed')
    for (const other of this.#network.others()) other.#requests.endAll('no-answer', (node) => node === this.node)
  }

  #requireOpen(): void {
    if (this.#isClosed) throw closedError()
  }
}
