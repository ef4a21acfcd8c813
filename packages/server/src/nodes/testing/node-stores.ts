import { SessionStore } from '@tapetree/session'
import { MemoryLogStore, type LogStore } from '@tapetree/session/log-store'

type Log = Awaited<ReturnType<LogStore['open']>>

/** One store in memory for several nodes, which tells them which of them owns a session, as a database does. */
export class NodeStores {
  readonly #logs = new MemoryLogStore()
  readonly #owners = new Map<string, string>()
  readonly #dead = new Set<string>()

  open(node: string): SessionStore {
    const logs = this.#logs
    const named = <T extends Log>(sessionId: string, log: T): T => {
      const owner = log.owner?.bind(log)
      return Object.assign(log, {
        owner: async () => {
          const found = await owner?.()
          const host = this.#owners.get(sessionId) ?? ''
          return found && !this.#dead.has(host) ? { ...found, reason: `Node ${host} writes it.`, host } : undefined
        },
      })
    }
    const port: LogStore = {
      create: (...args) => logs.create(...args),
      discard: (...args) => logs.discard(...args),
      list: (...args) => logs.list(...args),
      search: (...args) => logs.search(...args),
      placeOf: (...args) => logs.placeOf(...args),
      storedBytes: (...args) => logs.storedBytes(...args),
      move: (...args) => logs.move(...args),
      erase: (...args) => logs.erase(...args),
      close: async () => undefined,
      open: async (scope, sessionId, place) => named(sessionId, await logs.open(scope, sessionId, place)),
      claim: async (scope, sessionId, options) => {
        const host = this.#owners.get(sessionId) ?? ''
        const insist = options?.insist ?? this.#dead.has(host)
        const claim = await logs.claim(scope, sessionId, { ...options, insist })
        if (claim.type === 'owned') return { type: 'owned', owner: { reason: `Node ${host} writes it.`, host } }
        this.#owners.set(sessionId, node)
        return { type: 'claimed', log: named(sessionId, claim.log) }
      },
    }
    return new SessionStore(port)
  }

  /** As if the lease of a node had ended. */
  kill(node: string): void {
    this.#dead.add(node)
  }
}
