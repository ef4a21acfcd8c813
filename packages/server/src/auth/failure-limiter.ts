import type { Clock } from '@tapetree/agent/run'
import { Listeners } from '@tapetree/session/util/listeners'
import { isIPv6 } from 'node:net'
import { emitWarning } from '../util/problem-error.ts'

export interface FailureLimits {
  /** Maximum number of failures of one address within the window; the next one must wait. */
  max: number
  windowMs: number
}

const defaults: FailureLimits = { max: 10, windowMs: 60_000 }
/** Beyond this, the address with the oldest failure is dropped. */
const maxAddresses = 10_000

interface Failures {
  count: number
  /** When the count resets. */
  until: number
}

/**
 * Counts failures by address. Used only after a token was rejected, so a valid token is never refused because
 * of its address.
 */
export class FailureLimiter {
  readonly #clock: Clock
  readonly #limits: FailureLimits
  readonly #failures = new Map<string, Failures>()
  readonly #listeners = new Listeners<string>(emitWarning)

  constructor(clock: Clock, limits: Partial<FailureLimits> = {}) {
    this.#clock = clock
    this.#limits = { ...defaults, ...limits }
  }

  /** Calls the listener for each failure at this server. */
  onFailure(listener: (address: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Returns how long the address must wait; 0 if it may retry. */
  fail(address: string): number {
    this.#listeners.notify(address)
    return this.count(address)
  }

  /** Counts a failure at another server of the service. */
  count(address: string): number {
    const now = this.#clock.now()
    const key = networkOf(address)
    const known = this.#failures.get(key)
    const failures = known && known.until > now ? known : { count: 0, until: now + this.#limits.windowMs }
    failures.count++
    this.#failures.delete(key)
    this.#failures.set(key, failures)
    const [oldest] = this.#failures.keys()
    if (this.#failures.size > maxAddresses && oldest !== undefined) this.#failures.delete(oldest)
    return failures.count > this.#limits.max ? failures.until - now : 0
  }
}

/** For IPv6 the first 64 bits: clients choose the rest themselves. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, 4).join(':')
}
