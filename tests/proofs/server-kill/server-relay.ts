import { KillableServer } from './killable-server.ts'

/** One server after the other; the next one loads while the one before it works. */
export class ServerRelay {
  readonly #compileCache: string
  #current: KillableServer | undefined
  #next: KillableServer

  constructor(compileCache: string) {
    this.#compileCache = compileCache
    this.#next = new KillableServer(compileCache)
  }

  /** The one that is there: it may have hosted other sessions before. */
  get(): KillableServer {
    this.#current ??= this.#step()
    return this.#current
  }

  /** As `kill -9` does; gives the one that takes its place. */
  async kill(): Promise<KillableServer> {
    await this.#current?.kill()
    this.#current = this.#step()
    return this.#current
  }

  async close(): Promise<void> {
    await this.#current?.kill()
    await this.#next.kill()
  }

  #step(): KillableServer {
    const server = this.#next
    this.#next = new KillableServer(this.#compileCache)
    return server
  }
}
