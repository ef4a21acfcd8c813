import type { Clock } from '@tapetree/agent/run'
import type { Ack, WireStateValues } from '@tapetree/client/protocol'
import { newId } from '@tapetree/session'
import type { SessionBus } from '../bus/session-bus.ts'
import type { Connection } from '../live/connection.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import {
  decode,
  encode,
  frameTopic,
  type KnownState,
  type NodeReply,
  type NodeRequest,
  type ShownState,
} from './messages.ts'
import { problemOf } from '../util/problem-error.ts'

/** A watching node renews its request three times as often. */
export const watchLeaseMs = 6000
/** Less than a node waits for the answer to a command. */
const workingMs = 4000

interface SharedSession {
  instance: string
  connection: Connection
  /** When the request of each watching node ends. */
  watchers: Map<string, number>
}

export interface SharedSessionsOptions {
  bus: SessionBus
  tenants: ReadonlyMap<string, LiveSessions>
  clock: Clock
}

/** The sessions of this node, for other nodes: shows them there as long as someone watches, and runs the commands from there. */
export class SharedSessions {
  readonly #options: SharedSessionsOptions
  readonly #shared = new Map<LiveSession, SharedSession>()
  readonly #closing = new AbortController()

  constructor(options: SharedSessionsOptions) {
    this.#options = options
    options.bus.answer(async (message, from) => encode(await this.#answer(decode(message) as NodeRequest, from)))
    void this.#expire()
  }

  close(): void {
    this.#closing.abort()
    for (const live of this.#shared.keys()) this.#unshare(live)
  }

  async #answer(request: NodeRequest, from: string): Promise<NodeReply> {
    const sessions = this.#options.tenants.get(request.tenant)
    const live = await sessions?.peek(request.sessionId)
    if (!sessions || !live || live.isWatched || live.isClosed) return { type: 'elsewhere' }
    switch (request.type) {
      case 'watch':
        return { type: 'watched', shown: this.#show(live, from, request) }
      case 'command': {
        const { id, clientId, frame } = request.command
        try {
          if (frame.sender) sessions.clientIds.claimFromNode(clientId, frame.sender.tokenId)
        } catch (error) {
          return { type: 'done', ack: { id, ok: false, error: problemOf(error) } }
        }
        return this.#doneOrWorking(live.perform(id, clientId, frame))
      }
      default:
        request satisfies never
        return { type: 'elsewhere' }
    }
  }

  async #doneOrWorking(performed: Promise<Ack>): Promise<NodeReply> {
    const answered = new AbortController()
    const working = this.#options.clock.wait(workingMs, answered.signal).then((): NodeReply => ({ type: 'working' }))
    const done = performed.then((ack): NodeReply => ({ type: 'done', ack }))
    return Promise.race([done, working]).finally(() => answered.abort())
  }

  #show(
    live: LiveSession,
    from: string,
    { tenant, known, clients }: { tenant: string; known: KnownState; clients: WireStateValues['presence'] },
  ): ShownState {
    const { clock } = this.#options
    const shared = this.#shared.get(live) ?? this.#share(live, tenant)
    shared.watchers.set(from, clock.now() + watchLeaseMs)
    live.presence.setRemote(from, clients)
    const isSame = known.instance === shared.instance
    const { board, inFlight } = live
    const endOf = (item: string, part: number, kind: string): number =>
      known.texts.find((each) => each.item === item && each.part === part && each.kind === kind)?.end ?? 0
    return {
      instance: shared.instance,
      head: live.session.head.seq,
      state: board.since(isSame ? known.rev : 0),
      texts: [...inFlight.parts()].flatMap(({ item, part, kind, run, off, text }) => {
        const end = endOf(item, part, kind)
        const start = Math.max(off, end)
        if (off + text.length <= start) return []
        const type = start > end ? ('partial' as const) : ('delta' as const)
        return [
          { type, item, part, kind, off: start, text: text.slice(start - off), ...(run !== undefined && { run }) },
        ]
      }),
    }
  }

  /** The same frames for all watching nodes. They get what came before with the answer to their request. */
  #share(live: LiveSession, tenant: string): SharedSession {
    const { bus } = this.#options
    const instance = newId()
    const topic = frameTopic(tenant, live.session.id, instance)
    const connection = live.share({
      buffered: 0,
      send: (frame) => bus.publish(topic, frame),
      close: () => this.#shared.delete(live),
    })
    const shared: SharedSession = { instance, connection, watchers: new Map() }
    this.#shared.set(live, shared)
    return shared
  }

  #unshare(live: LiveSession): void {
    const shared = this.#shared.get(live)
    this.#shared.delete(live)
    if (shared) live.detach(shared.connection)
  }

  async #expire(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      await clock.wait(watchLeaseMs / 3, signal).catch(() => undefined)
      for (const [live, { watchers }] of this.#shared) {
        for (const [node, until] of watchers) {
          if (until > clock.now()) continue
          watchers.delete(node)
          live.presence.setRemote(node, [])
        }
        if (watchers.size === 0) this.#unshare(live)
      }
    }
  }
}
