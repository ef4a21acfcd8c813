import type { Clock } from '@tapetree/agent/run'
import { limits, type WireStateValues } from '@tapetree/client/protocol'
import type { Client } from './connection.ts'

interface Present {
  client: Client
  visibility: 'visible' | 'hidden'
  typing: boolean
  until: number
}

/** At most this many clients are listed, so that the state does not grow with the crowd. */
const maxNamed = 100
/** In a crowd clients come and go all the time; updates are limited to this rate. */
const crowd = { size: 20, tellMs: 1000 }

/** The attached clients. Leased, never logged: a client that is silent for a while is removed. */
export class Presence {
  readonly #clients = new Map<string, Present>()
  /** Clients with an expired lease and an open connection: a machine that slept returns with its next frame. */
  readonly #silent = new Map<string, Present>()
  /** The clients of other nodes. */
  readonly #remote = new Map<string, WireStateValues['presence']>()
  readonly #clock: Clock
  readonly #changed: () => void
  readonly #closing = new AbortController()
  #isWatching = false
  #isTelling = false

  constructor(clock: Clock, changed: () => void) {
    this.#clock = clock
    this.#changed = changed
  }

  join(client: Client): void {
    this.#silent.delete(client.id)
    this.#clients.set(client.id, { client, visibility: 'visible', typing: false, until: this.#lease() })
    this.#watch()
    this.#tell()
  }

  /** Renews the lease, with or without a change. */
  renew(clientId: string, news: { visibility?: 'visible' | 'hidden'; typing?: boolean } = {}): void {
    const silent = this.#silent.get(clientId)
    const present = this.#clients.get(clientId) ?? silent
    if (!present) return
    const { visibility, typing } = present
    Object.assign(present, news, { until: this.#lease() })
    if (silent) this.#return(clientId, silent)
    else if (present.visibility !== visibility || present.typing !== typing) this.#tell()
  }

  leave(clientId: string): void {
    this.#silent.delete(clientId)
    if (this.#clients.delete(clientId)) this.#tell()
  }

  list(): WireStateValues['presence'] {
    const isHere = ({ id }: { id: string }): boolean => this.#clients.has(id)
    const elsewhere = [...this.#remote.values()].flat().filter((client) => !isHere(client))
    return [...this.here(), ...elsewhere].slice(0, maxNamed)
  }

  /** The clients that are connected to this node. */
  here(): WireStateValues['presence'] {
    const named = this.#clients.values().take(maxNamed)
    return [...named.map(({ client, visibility, typing }) => ({ ...client, visibility, typing }))]
  }

  /** The clients that are connected to another node. */
  setRemote(node: string, clients: WireStateValues['presence']): void {
    if (JSON.stringify(this.#remote.get(node) ?? []) === JSON.stringify(clients)) return
    if (clients.length === 0) this.#remote.delete(node)
    else this.#remote.set(node, clients)
    this.#tell()
  }

  close(): void {
    this.#closing.abort()
  }

  #return(clientId: string, present: Present): void {
    this.#silent.delete(clientId)
    this.#clients.set(clientId, present)
    this.#watch()
    this.#tell()
  }

  #lease(): number {
    return this.#clock.now() + limits.presenceLeaseMs
  }

  #tell(): void {
    if (this.#clients.size <= crowd.size) {
      this.#changed()
      return
    }
    if (this.#isTelling) return
    this.#isTelling = true
    this.#clock.wait(crowd.tellMs, this.#closing.signal).then(
      () => {
        this.#isTelling = false
        this.#changed()
      },
      () => undefined,
    )
  }

  /** One timer for all leases. */
  #watch(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    const next = Math.min(...[...this.#clients.values()].map(({ until }) => until))
    const wait = this.#clock.wait(Math.max(0, next - this.#clock.now()), this.#closing.signal)
    wait.then(
      () => {
        this.#isWatching = false
        const now = this.#clock.now()
        const gone = [...this.#clients].filter(([, { until }]) => until <= now)
        for (const [id, present] of gone) {
          this.#clients.delete(id)
          this.#silent.set(id, present)
        }
        if (gone.length > 0) this.#tell()
        if (this.#clients.size > 0) this.#watch()
      },
      () => undefined,
    )
  }
}
