import type { Clock } from '@tapetree/agent/run'
import type { CountedRequest, UsageLimits } from '../auth/limits.ts'
import type { SessionBus } from '../bus/session-bus.ts'
import { decode, liveTopic, requestsTopic } from './messages.ts'

interface SharedUsageOptions {
  bus: SessionBus
  limits: UsageLimits
  clock: Clock
}

/** Requests are announced together, at most this often. */
const announceMs = 100
/** A node that has said nothing for three of these has no live sessions any more. */
const renewMs = 2000

/**
 * Makes the limits of requests and live sessions hold for all nodes together, as far as they hear of each other: what several
 * nodes admit within a moment may be more than the limit. Without the bus they hold for each node.
 */
export class SharedUsage {
  readonly #options: SharedUsageOptions
  readonly #closing = new AbortController()
  readonly #stops: (() => void)[]
  /** Requests that were not announced yet. */
  #counted = new Map<string, CountedRequest & { requests: number }>()
  readonly #heardAt = new Map<string, number>()
  #hasLive = false

  constructor(options: SharedUsageOptions) {
    const { bus, limits } = options
    this.#options = options
    this.#stops = [
      limits.onRequest((counted) => this.#count(counted)),
      limits.onOpened(() => this.#announceLive()),
      bus.onGap(() => this.#announceLive()),
    ]
    void this.#subscribe().catch(() => undefined)
    void this.#renew()
  }

  close(): void {
    this.#closing.abort()
    for (const stop of this.#stops) stop()
  }

  async #subscribe(): Promise<void> {
    const { bus, limits, clock } = this.#options
    const all = await Promise.all([
      bus.subscribe(requestsTopic, (message) => {
        const counted = decode(message) as (CountedRequest & { requests: number })[]
        for (const { requests, ...each } of counted) limits.countElsewhere(each, requests)
      }),
      bus.subscribe(liveTopic, (message, from) => {
        this.#heardAt.set(from, clock.now())
        limits.setLiveElsewhere(from, new Map(decode(message) as [string, string[]][]))
      }),
    ])
    if (this.#closing.signal.aborted) for (const stop of all) stop()
    else this.#stops.push(...all)
  }

  #count(counted: readonly CountedRequest[]): void {
    if (this.#counted.size === 0) void this.#announceRequests()
    for (const each of counted) {
      const known = this.#counted.get(each.key)
      this.#counted.set(each.key, { ...each, requests: (known?.requests ?? 0) + 1 })
    }
  }

  async #announceRequests(): Promise<void> {
    const { bus, clock } = this.#options
    await clock.wait(announceMs, this.#closing.signal).catch(() => undefined)
    const counted = [...this.#counted.values()]
    this.#counted = new Map()
    bus.publish(requestsTopic, Buffer.from(JSON.stringify(counted)))
  }

  /** An empty list is said once, so that the others forget what was there. */
  #announceLive(): void {
    const live = [...this.#options.limits.liveHere()].filter(([, ids]) => ids.length > 0)
    if (live.length === 0 && !this.#hasLive) return
    this.#hasLive = live.length > 0
    this.#options.bus.publish(liveTopic, Buffer.from(JSON.stringify(live)))
  }

  async #renew(): Promise<void> {
    const { clock, limits } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      await clock.wait(renewMs, signal).catch(() => undefined)
      if (signal.aborted) return
      this.#announceLive()
      for (const [node, heardAt] of this.#heardAt) {
        if (clock.now() - heardAt < 3 * renewMs) continue
        this.#heardAt.delete(node)
        limits.setLiveElsewhere(node, new Map())
      }
    }
  }
}
