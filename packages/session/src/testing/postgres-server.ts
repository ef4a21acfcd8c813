import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { wait } from '../util/wait.ts'

const programs = '/usr/lib/postgresql/15/bin'

/** Why no server can be started here; undefined if one can. */
export const missingPostgres = existsSync(join(programs, 'postgres'))
  ? undefined
  : `PostgreSQL 15 is not installed in ${programs}, so its tests are skipped.`

export interface PostgresServerOptions {
  /** Commits wait for the disk. Default: false, since tests do not survive a power cut. */
  isDurable?: boolean
  /** Names of standbys. A commit waits for any one of them. */
  standbys?: readonly string[]
  /** An empty folder for the server and for each standby. `remove` leaves it there. Default: temporary folders. */
  folders?: readonly string[]
  /** More settings, each as `name=value`. */
  settings?: readonly string[]
}

interface StandbyOptions {
  settings: readonly string[]
  /** The option that leaves its files without a sync, if any. */
  unsynced: readonly string[]
  folder: string | undefined
}

/** A server of its own on a socket in a temporary folder, which nothing else can reach. */
export class PostgresServer {
  readonly #folder: string
  readonly #isTemporary: boolean
  readonly #settings: readonly string[]
  readonly #standbys: PostgresServer[] = []
  #process: ChildProcess | undefined

  private constructor(settings: readonly string[], folder: string | undefined) {
    this.#folder = folder ?? mkdtempSync(join(tmpdir(), 'tt-pg-'))
    this.#isTemporary = folder === undefined
    this.#settings = settings
    if (isRoot) chownSync(this.#folder, nobody, nobody)
  }

  /** Creates a database in UTF-8 with a locale that knows the letters of all scripts, and starts the server. */
  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const { isDurable = false, standbys = [], folders = [] } = options
    const settings = [`fsync=${isDurable ? 'on' : 'off'}`, ...(options.settings ?? [])]
    const server = new PostgresServer(settings, folders[0])
    const database = ['-D', join(server.#folder, 'data'), '-U', 'admin', '-A', 'trust']
    const unsynced = isDurable ? [] : ['-N']
    await execute('initdb', [...database, '-E', 'UTF8', '--locale=C.UTF-8', ...unsynced])
    await server.resume()
    try {
      for (const [index, name] of standbys.entries()) {
        await server.#addStandby(name, { settings, unsynced, folder: folders[index + 1] })
      }
      if (standbys.length > 0) await server.#waitForStandbys(standbys)
    } catch (error) {
      await server.remove()
      throw error
    }
    return server
  }

  /** The server and its standbys. */
  get nodes(): readonly PostgresServer[] {
    return [this, ...this.#standbys]
  }

  /** The first process of the server. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Starts the server after `stop` or `kill`. */
  async resume(): Promise<void> {
    const settings = ['listen_addresses=', `unix_socket_directories=${this.#folder}`, 'max_connections=60']
    const options = [
      '-D',
      join(this.#folder, 'data'),
      ...[...settings, ...this.#settings].flatMap((each) => ['-c', each]),
    ]
    const child = spawn(join(programs, 'postgres'), options, { ...asNobody, stdio: ['ignore', 'ignore', 'pipe'] })
    this.#process = child
    let said = ''
    child.stderr.on('data', (text: Buffer) => (said = `${said}${text.toString()}`.slice(-2000)))
    for (;;) {
      const client = new Client({ connectionString: this.urlFor('admin', 'postgres') })
      const isUp = await client.connect().then(
        () => true,
        () => false,
      )
      await client.end().catch(() => undefined)
      if (isUp) return
      if (hasEnded(this.#process)) throw new Error(`The PostgreSQL server ended while it started: ${said}`)
      await wait(50)
    }
  }

  urlFor(user: string, database: string): string {
    return `postgres://${user}@${encodeURIComponent(this.#folder)}/${database}`
  }

  async connect(user: string, database: string): Promise<Client> {
    const client = new Client({ connectionString: this.urlFor(user, database) })
    await client.connect()
    return client
  }

  /** Runs statements as the administrator. */
  async admin(statements: string, database = 'postgres'): Promise<Record<string, unknown>[]> {
    const client = await this.connect('admin', database)
    try {
      return (await client.query<Record<string, unknown>>(statements)).rows
    } finally {
      await client.end()
    }
  }

  /** Ends all connections and the server. `SIGQUIT` is as a crash: the next start recovers. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' = 'SIGINT'): Promise<void> {
    const running = this.#process
    this.#process = undefined
    if (!running || hasEnded(running)) return
    const ended = once(running, 'exit')
    running.kill(signal)
    await ended
  }

  async remove(): Promise<void> {
    await this.stop()
    for (const standby of this.#standbys) await standby.remove()
    if (this.#isTemporary) rmSync(this.#folder, { recursive: true, force: true })
  }

  /** A copy of this server that follows it. */
  async #addStandby(name: string, { settings, unsynced, folder }: StandbyOptions): Promise<void> {
    const from = `host=${this.#folder} user=admin application_name=${name}`
    const standby = new PostgresServer([...settings, `primary_conninfo=${from}`], folder)
    this.#standbys.push(standby)
    const target = join(standby.#folder, 'data')
    await execute('pg_basebackup', ['-d', from, '-D', target, '-R', '-X', 'stream', '-c', 'fast', ...unsynced])
    await standby.resume()
  }

  async #waitForStandbys(names: readonly string[]): Promise<void> {
    await this.admin(`alter system set synchronous_standby_names = 'ANY 1 (${names.join(', ')})'`)
    await this.admin('select pg_reload_conf()')
    for (;;) {
      const [row] = await this.admin(`select count(*)::int as n from pg_stat_replication where sync_state = 'quorum'`)
      if (row?.['n'] === names.length) return
      await wait(50)
    }
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

async function execute(program: string, options: readonly string[]): Promise<void> {
  await promisify(execFile)(join(programs, program), options, asNobody)
}

/** PostgreSQL refuses to run as root. */
const isRoot = process.getuid?.() === 0
const nobody = 65_534
const asNobody = isRoot ? { uid: nobody, gid: nobody } : {}
