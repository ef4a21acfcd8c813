import type { Clock } from '@tapetree/agent/run'
import type { FailureLimiter } from '../auth/failure-limiter.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { failuresTopic, listTopic } from './messages.ts'
import { RelayedSession } from './relayed-session.ts'
import { SharedSessions } from './shared-sessions.ts'

export interface NodeLinkOptions {
  bus: SessionBus
  tenants: ReadonlyMap<string, LiveSessions>
  clock: Clock
  limiter: FailureLimiter
}

/**
 * Makes this server one node of a service: its clients may use sessions that other nodes own, and the other way round.
 * Owners are found by the store, so that the bus decides nothing.
 */
export class NodeLink {
  readonly #shared: SharedSessions
  readonly #stops: (() => void)[] = []
  #isClosed = false

  constructor(options: NodeLinkOptions) {
    const { bus, tenants, clock, limiter } = options
    this.#shared = new SharedSessions(options)
    for (const [tenant, sessions] of tenants) {
      sessions.useRelay(
        (sessionId, node, target) => new RelayedSession({ bus, clock, tenant, sessionId, node, target }),
      )
      void this.#shareList(bus, tenant, sessions).catch(() => undefined)
    }
    this.#stops.push(limiter.onFailure((address) => bus.publish(failuresTopic, Buffer.from(address))))
    void this.#subscribe(bus, failuresTopic, (address) => limiter.count(address)).catch(() => undefined)
  }

  close(): void {
    this.#isClosed = true
    this.#shared.close()
    for (const stop of this.#stops) stop()
  }

  async #shareList(bus: SessionBus, tenant: string, sessions: LiveSessions): Promise<void> {
    const topic = listTopic(tenant)
    let isRelaying = false
    const stop = sessions.onChange((sessionId) => {
      // The owner says so itself.
      const isWatched = sessions.opened.some((live) => live.session.id === sessionId && live.isWatched)
      if (!isRelaying && !isWatched) bus.publish(topic, Buffer.from(sessionId))
    })
    this.#stops.push(stop)
    await this.#subscribe(bus, topic, (sessionId) => {
      isRelaying = true
      try {
        sessions.changed(sessionId)
      } finally {
        isRelaying = false
      }
    })
  }

  async #subscribe(bus: SessionBus, topic: string, take: (text: string) => void): Promise<void> {
    const unsubscribe = await bus.subscribe(topic, (message) => take(Buffer.from(message).toString('utf8')))
    if (this.#isClosed) unsubscribe()
    else this.#stops.push(unsubscribe)
  }
}
