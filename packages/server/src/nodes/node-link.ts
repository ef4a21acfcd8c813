import type { Clock } from '@tapetree/agent/run'
import type { FailureLimiter } from '../auth/failure-limiter.ts'
import type { UsageLimits } from '../auth/limits.ts'
import type { TokenStore } from '../auth/token-store.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { failuresTopic, listTopic, tokensTopic } from './messages.ts'
import { RelayedSession } from './relayed-session.ts'
import { SharedSessions } from './shared-sessions.ts'
import { SharedUsage } from './shared-usage.ts'

export interface NodeLinkOptions {
  bus: SessionBus
  tenants: ReadonlyMap<string, LiveSessions>
  clock: Clock
  limiter: FailureLimiter
  limits: UsageLimits
  tokens?: TokenStore | undefined
}

/**
 * Makes this server one node of a service: its clients may use sessions that other nodes own, and the other way round.
 * Owners are found by the store, so that the bus decides nothing.
 */
export class NodeLink {
  readonly #shared: SharedSessions
  readonly #usage: SharedUsage
  readonly #stops: (() => void)[] = []
  #isClosed = false

  constructor(options: NodeLinkOptions) {
    const { bus, tenants, clock, limiter, limits, tokens } = options
    this.#shared = new SharedSessions(options)
    this.#usage = new SharedUsage({ bus, limits, clock })
    if (tokens) this.#shareTokens(bus, tokens)
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
    this.#usage.close()
    for (const stop of this.#stops) stop()
  }

  /** Without the bus, each node reads the tokens once a second. */
  #shareTokens(bus: SessionBus, tokens: TokenStore): void {
    // If they cannot be read now, the next second does it.
    const reload = (): void => void tokens.reload().catch(() => undefined)
    this.#stops.push(
      tokens.onChanged(() => bus.publish(tokensTopic, new Uint8Array())),
      bus.onGap(reload),
    )
    void this.#subscribe(bus, tokensTopic, reload).catch(() => undefined)
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
