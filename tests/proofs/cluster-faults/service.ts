import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { Client } from 'pg'
import { bundleProgram } from '../../support/bundle-program.ts'
import { Cluster, Daemon, makeFolder, until } from '../pg-faults/cluster.ts'
import { ServedNode } from '../takeover/served-node.ts'
import { Writers } from '../takeover/writers.ts'
import { Network, type Machine } from './network.ts'

/** Three servers, three servers of a database, its store of leases, and NATS: each on a machine of its own. */
export class Service {
  readonly network: Network
  readonly machines: { servers: readonly Machine[]; databases: readonly Machine[]; etcd: Machine; bus: Machine }
  readonly nats: Daemon
  readonly ledger: string
  /** Also those that were killed. */
  readonly allServers: ServedNode[] = []
  readonly #folder: string
  readonly #random: () => number
  readonly #servers: ServedNode[] = []
  #cluster: Cluster | undefined
  #program = ''
  #started = 0

  private constructor(folder: string, random: () => number) {
    this.#folder = folder
    this.#random = random
    this.ledger = join(folder, 'ledger')
    writeFileSync(this.ledger, '')
    const network = new Network(folder)
    const add = (...names: string[]): Machine[] => names.map((name) => network.add(name))
    const [etcd, bus] = add('etcd', 'bus') as [Machine, Machine]
    this.network = network
    this.machines = { servers: add('s1', 's2', 's3'), databases: add('d1', 'd2', 'd3'), etcd, bus }
    const options = ['-a', bus.address, '-p', `${busPort}`]
    const home = makeFolder(join(folder, 'nats'))
    this.nats = new Daemon(home, { program: '/usr/sbin/nats-server', options, enter: bus.enter })
  }

  static async start(folder: string, random: () => number): Promise<Service> {
    const service = new Service(folder, random)
    const { etcd, databases, servers } = service.machines
    service.nats.start()
    service.#program = await bundleProgram(nodeProgram, {
      folder: join(folder, 'bundle'),
      compileCache: service.#compileCache,
    })
    const cluster = await Cluster.start(folder, { etcd, nodes: databases })
    service.#cluster = cluster
    const primary = await cluster.primary()
    await primary.ask('create database sessions')
    const url = `postgres://admin@${primary.address}:${primary.port}/sessions`
    await migratePostgres(url)
    await primary.ask('create role app login in role tapetree_app')
    const client = new Client({ connectionString: url })
    await client.connect()
    await Writers.watch(client)
    await client.end()
    await Promise.all(servers.map((_, index) => service.startServer(index)))
    return service
  }

  get cluster(): Cluster {
    if (!this.#cluster) throw new Error('The database has not started.')
    return this.#cluster
  }

  get servers(): readonly ServedNode[] {
    return this.#servers
  }

  /** In the place of the one that was there. */
  async startServer(index: number): Promise<void> {
    const machine = this.machines.servers[index] as Machine
    const node = new ServedNode(`${machine.name}-${++this.#started}`, {
      compileCache: this.#compileCache,
      enter: machine.enter,
      program: this.#program,
    })
    this.#servers[index] = node
    this.allServers.push(node)
    const folder = join(this.#folder, node.name)
    mkdirSync(folder)
    await node.serve({
      database: this.cluster.nodes.map(({ address, port, restPort }) => ({ address, port, restPort })),
      busUrl: `nats://${this.machines.bus.address}:${busPort}`,
      folder,
      ledger: this.ledger,
      seed: Math.floor(this.#random() * 2 ** 32),
      at: { host: machine.address, port: serverPort },
    })
  }

  get #compileCache(): string {
    return join(this.#folder, 'compile-cache')
  }

  urlOf(index: number): string {
    return `http://${this.machines.servers[index]?.address}:${serverPort}`
  }

  /** Asks the primary, also if another one is about to lead. */
  async ask(statement: string): Promise<Record<string, unknown>[]> {
    return until('the database answers', async () => (await this.cluster.primary()).ask(statement, 'sessions'))
  }
}

const nodeProgram = fileURLToPath(new URL('../takeover/node-process.ts', import.meta.url))
const busPort = 4222
const serverPort = 8080
