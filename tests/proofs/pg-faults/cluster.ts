import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, openSync, readFileSync, statfsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { isRunning, signalTree } from './processes.ts'

const programs = '/usr/lib/postgresql/15/bin'
/** PostgreSQL, Patroni and PgBouncer refuse to run as root, or should not. */
const nobody = { uid: 65_534, gid: 65_534 }

/**
 * Three PostgreSQL servers that Patroni manages with etcd. One leads, a commit waits for a synchronous standby, and when the lease of the
 * leader ends, a synchronous standby is promoted. The lease is short, so that a failover takes seconds.
 */
export class Cluster {
  readonly nodes: readonly ClusterNode[]
  readonly #etcd: Daemon

  private constructor(etcd: Daemon, nodes: readonly ClusterNode[]) {
    this.#etcd = etcd
    this.nodes = nodes
  }

  /** Below `folder`, where it also mounts the disks of the nodes. */
  static async start(folder: string, places: Places = {}): Promise<Cluster> {
    const [client = 0, peer = 0, ...ports] = await freePorts(2 + 2 * names.length)
    const home = makeFolder(join(folder, 'etcd'))
    const { etcd: etcdPlace = here, nodes: nodePlaces = [] } = places
    const urls = (port: number): string => `http://${etcdPlace.address}:${port}`
    const etcdOptions = [
      ...[
        '--name',
        'etcd',
        '--data-dir',
        join(home, 'data'),
        '--enable-v2',
        '--unsafe-no-fsync',
        '--log-level',
        'error',
      ],
      ...['--listen-client-urls', urls(client), '--advertise-client-urls', urls(client)],
      ...['--listen-peer-urls', urls(peer), '--initial-advertise-peer-urls', urls(peer)],
      ...['--initial-cluster', `etcd=${urls(peer)}`],
    ]
    const etcd = new Daemon(home, { program: '/usr/bin/etcd', options: etcdOptions, enter: etcdPlace.enter })
    etcd.start()
    const nodes = names.map((name, index) => {
      const [port = 0, restPort = 0] = ports.slice(2 * index)
      const etcdHost = `${etcdPlace.address}:${client}`
      const place = nodePlaces[index] ?? here
      return new ClusterNode({ folder: makeFolder(join(folder, name)), name, port, restPort, etcdHost, place })
    })
    const cluster = new Cluster(etcd, nodes)
    const [first, ...others] = nodes
    first?.patroni.start()
    await until('the first node leads', async () => first?.isPrimary())
    for (const node of others) node.patroni.start()
    await cluster.isWhole()
    return cluster
  }

  get etcd(): Daemon {
    return this.#etcd
  }

  /** The node that leads, as it says itself. */
  async primary(): Promise<ClusterNode> {
    return until('a node leads', async () => {
      for (const node of this.nodes) if (await node.isPrimary()) return node
      return undefined
    })
  }

  /** The standby that commits wait for and that Patroni would promote, and the other one. */
  async standbys(): Promise<{ synchronous: ClusterNode; other: ClusterNode }> {
    return until('the primary has two standbys', async () => {
      const primary = await this.primary()
      const rows = await primary.ask(
        `select application_name as name, sync_state as state from pg_stat_replication where state = 'streaming'`,
      )
      const members = await primary.members()
      const find = (role: string, state: string): ClusterNode | undefined =>
        this.nodes.find(
          ({ name }) =>
            rows.some((row) => row['name'] === name && row['state'] === state) &&
            members.some((member) => member.name === name && member.role === role),
        )
      const [synchronous, other] = [find('sync_standby', 'sync'), find('replica', 'async')]
      return synchronous && other && { synchronous, other }
    })
  }

  /** One node leads, and two follow it. */
  async isWhole(): Promise<void> {
    try {
      await this.standbys()
    } catch (cause) {
      const logs = this.nodes.map(({ name, patroni }) => `${name}:\n${patroni.lastOutput()}`)
      throw new Error(`The cluster did not recover.\n${logs.join('\n')}`, { cause })
    }
  }
}

const names = ['node_a', 'node_b', 'node_c']

/** Where a program runs. */
interface Place {
  address: string
  /** What starts a program there. */
  enter: readonly string[]
}

/** Default: all on this machine. */
interface Places {
  etcd?: Place
  nodes?: readonly Place[]
}

const here: Place = { address: '127.0.0.1', enter: [] }

interface NodeOptions {
  folder: string
  name: string
  port: number
  restPort: number
  etcdHost: string
  place: Place
}

/** A PostgreSQL server with its Patroni, its data and its WAL on disks of their own. */
export class ClusterNode {
  readonly name: string
  readonly address: string
  readonly port: number
  readonly restPort: number
  readonly patroni: Daemon
  readonly disks: { data: SmallDisk; wal: SmallDisk }

  constructor(options: NodeOptions) {
    const { folder, name, port, restPort, place } = options
    this.name = name
    this.address = place.address
    this.port = port
    this.restPort = restPort
    this.disks = {
      data: new SmallDisk(join(folder, 'data'), 1500),
      wal: new SmallDisk(join(folder, 'wal'), 700),
    }
    const settings = join(folder, 'patroni.yml')
    // JSON is YAML.
    writeFileSync(settings, JSON.stringify(patroniSettings(options, this.disks)))
    this.patroni = new Daemon(folder, { program: '/usr/bin/patroni', options: [settings], enter: place.enter })
  }

  /** Whether Patroni says that this node leads, which is what a load balancer asks. */
  async isPrimary(timeoutMs?: number): Promise<boolean> {
    return leads(this, timeoutMs)
  }

  /** The nodes of the cluster, as Patroni knows them. */
  async members(): Promise<{ name: string; role: string }[]> {
    const signal = AbortSignal.timeout(1000)
    const answer = await fetch(`http://${this.address}:${this.restPort}/cluster`, { signal })
    return ((await answer.json()) as { members: { name: string; role: string }[] }).members
  }

  async ask(statement: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const connectionString = `postgres://admin@${this.address}:${this.port}/${database}`
    const client = new Client({ connectionString, connectionTimeoutMillis: 3000, query_timeout: 30_000 })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return (await client.query<Record<string, unknown>>(statement)).rows
    } finally {
      await client.end().catch(() => undefined)
    }
  }

  /** The first process of the server; undefined if it is not running. */
  get postmaster(): number | undefined {
    try {
      const [pid = ''] = readFileSync(join(this.disks.data.path, 'main', 'postmaster.pid'), 'utf8').split('\n')
      return isRunning(Number(pid)) ? Number(pid) : undefined
    } catch {
      return undefined
    }
  }

  /** Sends a signal to the server: to all of its processes. */
  signalServer(signal: NodeJS.Signals): void {
    const { postmaster } = this
    if (postmaster !== undefined) signalTree(postmaster, signal)
  }
}

/** Whether the server at this place leads, as its Patroni says. */
export async function leads(
  { address, restPort }: Pick<ClusterNode, 'address' | 'restPort'>,
  timeoutMs = 1000,
): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    return (await fetch(`http://${address}:${restPort}/primary`, { signal })).ok
  } catch {
    return false
  }
}

function patroniSettings(
  { name, port, restPort, etcdHost, folder, place: { address } }: NodeOptions,
  disks: ClusterNode['disks'],
): unknown {
  return {
    scope: 'proof',
    name,
    restapi: { listen: `${address}:${restPort}`, connect_address: `${address}:${restPort}` },
    // Not `etcd3`: a leader that was paused for longer than its lease takes the lock back from the next one there, in Patroni 3.0.2.
    etcd: { host: etcdHost },
    bootstrap: {
      dcs: {
        ...{ ttl: 6, loop_wait: 1, retry_timeout: 2, synchronous_mode: true, master_start_timeout: 10 },
        postgresql: { use_pg_rewind: true, use_slots: true, parameters },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'data-checksums', { waldir: join(disks.wal.path, 'main') }],
    },
    postgresql: {
      listen: `${address}:${port}`,
      connect_address: `${address}:${port}`,
      data_dir: join(disks.data.path, 'main'),
      bin_dir: programs,
      pgpass: join(folder, 'pgpass'),
      authentication: {
        superuser: { username: 'admin' },
        replication: { username: 'replicator' },
        rewind: { username: 'admin' },
      },
      pg_hba: ['host all all samenet trust', 'host replication all samenet trust', 'local all all trust'],
      parameters: { unix_socket_directories: folder },
      basebackup: [{ waldir: join(disks.wal.path, 'main') }, { checkpoint: 'fast' }],
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
  }
}

/** A standby that does not answer is given up after seconds, so that Patroni can make the other one synchronous. */
const parameters = {
  max_connections: 120,
  shared_buffers: '32MB',
  wal_keep_size: '64MB',
  max_wal_size: '128MB',
  min_wal_size: '32MB',
  wal_sender_timeout: '3s',
  wal_receiver_timeout: '3s',
  wal_receiver_status_interval: '1s',
  wal_log_hints: 'on',
  tcp_keepalives_idle: 5,
}

/** A file system in memory that can be full. */
export class SmallDisk {
  readonly path: string
  readonly #megabytes: number

  constructor(path: string, megabytes: number) {
    this.path = path
    this.#megabytes = megabytes
    mkdirSync(path)
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tapetree-pg-faults', path])
    chownSync(path, nobody.uid, nobody.gid)
    chmodSync(path, 0o700)
  }

  /** Leaves `freeBytes`. */
  async fill(freeBytes: number): Promise<void> {
    await until('the disk is full', async () => {
      // If more was written since it was counted, it is counted again.
      const { bsize, blocks, bfree } = statfsSync(this.path)
      await this.#resize(`${(blocks - bfree) * bsize + Math.round(freeBytes)}`)
      return true
    })
  }

  async empty(): Promise<void> {
    await this.#resize(`${this.#megabytes}m`)
  }

  async #resize(size: string): Promise<void> {
    await promisify(execFile)('mount', ['-o', `remount,size=${size}`, this.path])
  }
}

interface Command {
  program: string
  options: readonly string[]
  enter?: readonly string[]
}

/** A program that runs until it is killed, and that is started again then. */
export class Daemon {
  readonly #folder: string
  readonly #command: Command
  #process: ChildProcess | undefined

  constructor(folder: string, command: Command) {
    this.#folder = folder
    this.#command = command
  }

  start(): void {
    const output = openSync(join(this.#folder, 'output.log'), 'a')
    const env = { PATH: process.env['PATH'], HOME: this.#folder, LC_ALL: 'C.UTF-8' }
    const { program, options, enter = [] } = this.#command
    // Only root may go to another place.
    const become = ['setpriv', '--reuid', `${nobody.uid}`, '--regid', `${nobody.gid}`, '--clear-groups']
    const [first = '', ...rest] = [...(enter.length > 0 ? [...enter, ...become] : []), program, ...options]
    this.#process = spawn(first, rest, {
      ...(enter.length === 0 && nobody),
      env,
      cwd: this.#folder,
      stdio: ['ignore', output, output],
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  /** Without the stack traces of Patroni. */
  lastOutput(): string {
    const lines = readFileSync(join(this.#folder, 'output.log'), 'utf8').split('\n')
    return lines
      .filter((line) => /^\d{4}-/.test(line) && !line.includes('get_postgresql_status'))
      .slice(-60)
      .join('\n')
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (!running || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill('SIGKILL')
    await ended
  }
}

/** Asks until there is an answer, for at most two minutes. */
export async function until<Value>(what: string, ask: () => Promise<Value | undefined | false>): Promise<Value> {
  const endMs = Date.now() + 120_000
  for (;;) {
    const value = await ask().catch(() => undefined)
    if (value !== undefined && value !== false) return value
    if (Date.now() > endMs) throw new Error(`Waited two minutes in vain until ${what}.`)
    await setTimeout(100)
  }
}

export function makeFolder(path: string): string {
  mkdirSync(path)
  chownSync(path, nobody.uid, nobody.gid)
  return path
}

/** All are taken before any is free again, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  for (const server of servers) await new Promise((resolve) => server.close(resolve))
  return ports
}
