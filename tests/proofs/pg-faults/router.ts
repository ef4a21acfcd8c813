import { once } from 'node:events'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { leads, type ClusterNode } from './cluster.ts'

type RoutedNode = Pick<ClusterNode, 'address' | 'port' | 'restPort'>

interface Link {
  client: Socket
  server: Socket
  node: RoutedNode
}

/**
 * Connects clients to the node that leads, as a load balancer before a cluster does: it asks Patroni, and it cuts the connections to a
 * node that leads no more, unless it is told to forget that. Connections can be cut and stalled.
 */
export class Router {
  readonly #server: Server
  readonly #links = new Set<Link>()
  readonly #closed = new AbortController()
  /** How often in a row each node did not say that it leads. */
  readonly #silences: Map<RoutedNode, number>
  readonly #watching: Promise<unknown>
  /** Whether connections to a former primary stay open. */
  keepsOldLinks = false

  private constructor(nodes: readonly RoutedNode[], server: Server) {
    this.#server = server
    this.#silences = new Map(nodes.map((node) => [node, fall]))
    server.on('connection', (client) => this.#connect(client))
    this.#watching = Promise.all(nodes.map((node) => this.#watch(node)))
  }

  static async start({ nodes }: { nodes: readonly RoutedNode[] }): Promise<Router> {
    const server = createServer({ noDelay: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const router = new Router(nodes, server)
    await Promise.all(nodes.map((node) => router.#look(node)))
    return router
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  /** Breaks connections. Gives their number. */
  cut(which: () => boolean): number {
    const chosen = [...this.#links].filter(which)
    for (const link of chosen) this.#cut(link)
    return chosen.length
  }

  /** Passes on nothing more on these connections, in neither direction, and does not close them. Gives their number. */
  stall(which: () => boolean): number {
    const chosen = [...this.#links].filter(which)
    for (const { client, server } of chosen) {
      client.unpipe().pause()
      server.unpipe().pause()
      // Paused sockets do not notice that the other end is gone. The server is not told, as in a network that drops packets.
      client.on('data', () => undefined)
    }
    return chosen.length
  }

  async close(): Promise<void> {
    this.#closed.abort()
    this.#server.close()
    this.cut(() => true)
    await this.#watching
  }

  #connect(client: Socket): void {
    client.on('error', () => undefined)
    const up = [...this.#silences].filter(([, silences]) => silences < fall).map(([node]) => node)
    const node = up[Math.floor(Math.random() * up.length)]
    if (!node) {
      client.destroy()
      return
    }
    const server = createConnection({ host: node.address, port: node.port, noDelay: true })
    const link = { client, server, node }
    this.#links.add(link)
    server.on('error', () => undefined)
    client.pipe(server)
    server.pipe(client)
    for (const socket of [client, server]) socket.on('close', () => this.#cut(link))
  }

  #cut(link: Link): void {
    this.#links.delete(link)
    link.client.destroy()
    link.server.destroy()
  }

  async #look(node: RoutedNode): Promise<number> {
    const silences = (await leads(node, 500)) ? 0 : (this.#silences.get(node) ?? 0) + 1
    this.#silences.set(node, silences)
    return silences
  }

  async #watch(node: RoutedNode): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const silences = await this.#look(node)
      if (silences >= fall && !this.keepsOldLinks) {
        for (const link of this.#links) if (link.node === node) this.#cut(link)
      }
      await setTimeout(200)
    }
  }
}

/** A node that did not say so often in a row that it leads is no longer used. */
const fall = 3
