import type { Clock } from '@tapetree/agent/run'
import type { Admitted } from './gatekeeper.ts'
import type { TokenStore } from './token-store.ts'

/** Timers cannot be longer than 24 days. */
const longestWaitMs = 24 * 60 * 60_000
/** How often revocations by other processes are checked. */
const refreshMs = 1000

interface Holder {
  drop: () => void
  over: AbortController
}

export interface TokenHoldersOptions {
  tokens: TokenStore | undefined
  clock: Clock
  onRevoked?: (tokenId: string) => void
}

/** Connections and streams of a token, ended when it is revoked or expires. */
export class TokenHolders {
  readonly #clock: Clock
  readonly #holders = new Map<string, Set<Holder>>()
  readonly #stop: (() => void) | undefined
  readonly #closing = new AbortController()

  /** `onRevoked` is called for every revoked token, even without a connection. */
  constructor({ tokens, clock, onRevoked }: TokenHoldersOptions) {
    this.#clock = clock
    this.#stop = tokens?.onRevoked((tokenId) => {
      for (const { drop } of this.#holders.get(tokenId) ?? []) drop()
      onRevoked?.(tokenId)
    })
    if (tokens) void this.#watch(tokens)
  }

  /** `drop` is called when it must end. Call the returned function when it has ended by itself. */
  hold({ caller: { tokenId }, expiresAt }: Admitted, drop: () => void): () => void {
    const holder: Holder = { drop, over: new AbortController() }
    const holders = this.#holders.get(tokenId) ?? new Set()
    this.#holders.set(tokenId, holders.add(holder))
    if (expiresAt !== undefined) void this.#dropAt(expiresAt, holder)
    return () => {
      holder.over.abort()
      holders.delete(holder)
      if (holders.size === 0 && this.#holders.get(tokenId) === holders) this.#holders.delete(tokenId)
    }
  }

  close(): void {
    this.#closing.abort('closed')
    this.#stop?.()
    for (const { over } of [...this.#holders.values()].flatMap((each) => [...each])) over.abort()
    this.#holders.clear()
  }

  /** Requests read the token file themselves; open sockets and streams do not. */
  async #watch(tokens: TokenStore): Promise<void> {
    for (;;) {
      const isOver = await this.#clock.wait(refreshMs, this.#closing.signal).then(
        () => false,
        () => true,
      )
      if (isOver) return
      tokens.refresh()
    }
  }

  async #dropAt(time: number, { drop, over }: Holder): Promise<void> {
    while (time > this.#clock.now()) {
      const isOver = await this.#clock.wait(Math.min(time - this.#clock.now(), longestWaitMs), over.signal).then(
        () => false,
        () => true,
      )
      if (isOver) return
    }
    drop()
  }
}
