import type { Clock } from '@tapetree/agent/run'
import type { Ack, StateKey, TextFrame } from '@tapetree/client/protocol'
import type { SessionBus } from '../bus/session-bus.ts'
import type { RelayedCommand } from '../live/commands.ts'
import type { OwnerLink, RelayTarget } from '../live/owner-link.ts'
import {
  decode,
  encode,
  frameTopic,
  type KnownState,
  type NodeReply,
  type NodeRequest,
  type ShownState,
} from './messages.ts'
import { watchLeaseMs } from './shared-sessions.ts'

export interface RelayedSessionOptions {
  bus: SessionBus
  clock: Clock
  tenant: string
  sessionId: string
  /** The node that owns it. */
  node: string
  target: RelayTarget
}

/** Follows what another node shows of its session, and sends it the commands of the clients here. */
export class RelayedSession implements OwnerLink {
  readonly node: string
  readonly #options: RelayedSessionOptions
  readonly #closing = new AbortController()
  readonly #stops: (() => void)[] = []
  #instance: string | undefined
  #unsubscribe: (() => void) | undefined
  /** An answer had everything up to this one. Frames do not count: one before them may be lost. */
  #rev = 0
  /** Of the newest value of each key: an older one may come later, in a frame or in an answer. */
  readonly #revs = new Map<string, number>()
  /** The request that is under way, and whether another one is needed after it. */
  #watching: Promise<void> | undefined
  #isStale = false

  constructor(options: RelayedSessionOptions) {
    this.#options = options
    this.node = options.node
    this.#stops.push(options.bus.onGap(() => this.renew()))
    void this.#keep()
  }

  /** Asks for what is missing, for example because a client here has come or gone. */
  renew(): void {
    if (this.#closing.signal.aborted) return
    if (this.#watching) {
      this.#isStale = true
      return
    }
    this.#watching = this.#watch()
      .catch(() => this.#lose())
      .finally(() => {
        this.#watching = undefined
        if (this.#isStale) {
          this.#isStale = false
          this.renew()
        }
      })
  }

  /** Undefined if the node does not own the session any more. Rejects with `BusError`. */
  async perform(command: RelayedCommand): Promise<Ack | 'working' | undefined> {
    const reply = await this.#request({ type: 'command', ...this.#place, command }, commandMs)
    if (reply.type === 'working') return 'working'
    return reply.type === 'done' ? reply.ack : undefined
  }

  close(): void {
    this.#closing.abort()
    this.#unsubscribe?.()
    for (const stop of this.#stops) stop()
  }

  get #place(): { tenant: string; sessionId: string } {
    const { tenant, sessionId } = this.#options
    return { tenant, sessionId }
  }

  /** Renews the request before its lease ends. */
  async #keep(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      this.renew()
      await this.#options.clock.wait(watchLeaseMs / 3, signal).catch(() => undefined)
    }
  }

  async #watch(): Promise<void> {
    const shown = await this.#show()
    if (!shown) return this.#lose()
    if (shown.instance !== this.#instance) {
      this.#unsubscribe?.()
      this.#instance = shown.instance
      this.#rev = 0
      this.#revs.clear()
      const { bus } = this.#options
      const topic = frameTopic(this.#options.tenant, this.#options.sessionId, shown.instance)
      this.#unsubscribe = await bus.subscribe(topic, (frame) => this.#takeFrame(frame))
      if (this.#closing.signal.aborted) return this.#unsubscribe()
      this.#take(shown)
      // What was published before the subscription was in force.
      this.#isStale = true
      return
    }
    this.#take(shown)
  }

  async #show(): Promise<ShownState | undefined> {
    const { target } = this.#options
    const known: KnownState = {
      ...(this.#instance !== undefined && { instance: this.#instance }),
      rev: this.#rev,
      texts: target.texts(),
    }
    const reply = await this.#request({ type: 'watch', ...this.#place, known, clients: target.clients() }, watchMs)
    return reply.type === 'watched' ? reply.shown : undefined
  }

  async #request(request: NodeRequest, timeoutMs: number): Promise<NodeReply> {
    return decode(await this.#options.bus.request(this.node, encode(request), { timeoutMs })) as NodeReply
  }

  #lose(): void {
    if (this.#closing.signal.aborted) return
    this.#options.target.onLost()
  }

  #take({ head, state, texts }: ShownState): void {
    if (this.#closing.signal.aborted) return
    const { target } = this.#options
    for (const { rev } of state) this.#rev = Math.max(this.#rev, rev)
    const newer = state.filter(({ key, rev }) => this.#isNewer(key, rev))
    if (newer.length > 0) target.takeState(Object.fromEntries(newer.map(({ key, value }) => [key, value])))
    for (const text of texts) target.takeText(text)
    target.takeHead(head)
  }

  /** A frame as clients get it: a line, the state, text in flight, or the end. */
  #takeFrame(bytes: Uint8Array): void {
    const { target } = this.#options
    const frame = decode(bytes) as Frame
    if (typeof frame.seq === 'number') return target.takeHead(frame.seq)
    switch (frame.type) {
      case 'state':
        if (!this.#isNewer(frame.data.key, frame.rev)) return
        return target.takeState({ [frame.data.key]: frame.data.value })
      case 'delta':
      case 'partial':
        return this.#hasHole(frame.data) ? this.renew() : target.takeText({ ...frame.data, type: frame.type })
      case 'bye':
      case 'gone':
        return this.#lose()
      default:
        // Answers to single clients, and notices that the lines here cause again.
        return
    }
  }

  #isNewer(key: string, rev: number): boolean {
    if (rev <= (this.#revs.get(key) ?? 0)) return false
    this.#revs.set(key, rev)
    return true
  }

  #hasHole({ item, part, kind, off }: TextFrame): boolean {
    const known = this.#options.target
      .texts()
      .find((each) => each.item === item && each.part === part && each.kind === kind)
    return off > (known?.end ?? 0)
  }
}

type Frame =
  | { seq: number; type: string }
  | { seq?: undefined; type: 'state'; data: { key: StateKey; value: unknown }; rev: number }
  | { seq?: undefined; type: 'delta' | 'partial'; data: TextFrame }
  | { seq?: undefined; type: 'bye' | 'gone' | 'other' }

/** The owner answers within this time, also to a command that takes longer. It is sent again, and takes effect once. */
const commandMs = 5000
const watchMs = 3000
