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

/** A server of its own on a socket in a temporary folder, which nothing else can reach. */
export class PostgresServer {
  readonly #folder: string
  #process: ChildProcess | undefined

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Creates a database in UTF-8 with a locale that knows the letters of all scripts, and starts the server. */
  static async start(): Promise<PostgresServer> {
    const folder = mkdtempSync(join(tmpdir(), 'tt-pg-'))
    if (isRoot) chownSync(folder, nobody, nobody)
    const server = new PostgresServer(folder)
    const options = ['-D', join(folder, 'data'), '-U', 'admin', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '-N']
    await promisify(execFile)(join(programs, 'initdb'), options, asNobody)
    await server.resume()
    return server
  }

  /** Starts the server after `stop` or `kill`. */
  async resume(): Promise<void> {
    // The tests do not survive a power cut, so nothing is synced.
    const settings = ['listen_addresses=', `unix_socket_directories=${this.#folder}`, 'fsync=off', 'max_connections=60']
    const options = ['-D', join(this.#folder, 'data'), ...settings.flatMap((each) => ['-c', each])]
    this.#process = spawn(join(programs, 'postgres'), options, { ...asNobody, stdio: 'ignore' })
    for (;;) {
      const client = new Client({ connectionString: this.urlFor('admin', 'postgres') })
      const isUp = await client.connect().then(
        () => true,
        () => false,
      )
      await client.end().catch(() => undefined)
      if (isUp) return
      if (this.#process.exitCode !== null) throw new Error('The PostgreSQL server ended while it started.')
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
    if (!running || running.exitCode !== null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    await ended
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** PostgreSQL refuses to run as root. */
const isRoot = process.getuid?.() === 0
const nobody = 65_534
const asNobody = isRoot ? { uid: nobody, gid: nobody } : {}
