import { Listeners } from '@tapetree/session/util/listeners'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { relative } from 'node:path'
import type { BoxProgram } from '../tools/commands/program-box.ts'
import { findServer } from './known-servers.ts'
import { LanguageServer, type Diagnostic, type LanguageServerState } from './language-server.ts'

export interface LanguageServersOptions {
  /** The root of the project, absolute and without symbolic links. */
  workspace: string
  /** Of the user. Servers get only what they need of it. */
  environment: Readonly<Record<string, string | undefined>>
  clock?: Clock
  /** Puts servers into a sandbox. */
  box?: BoxProgram
}

const passed = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TMPDIR',
  'USER',
  'GOPATH',
  'GOROOT',
  'CARGO_HOME',
  'RUSTUP_HOME',
  'VIRTUAL_ENV',
]
const maxServers = 4

/** What servers say about some files. */
export interface Answers {
  /** Also about other files that the servers know. */
  found: Map<string, Diagnostic[]>
  /** Files of servers that have failed, do not run, or said nothing about them. Files without a server are not among them. */
  unanswered: readonly string[]
}

interface Shared {
  servers: LanguageServers
  users: number
}

const shared = new Map<string, Shared>()

/** The language servers of a workspace. All sessions of this process that work in it share them. */
export class LanguageServers {
  readonly workspace: string
  readonly #options: LanguageServersOptions
  readonly #servers = new Map<string, LanguageServer>()
  readonly #listeners = new Listeners<void>()

  private constructor(options: LanguageServersOptions) {
    this.#options = options
    this.workspace = options.workspace
  }

  /** Starts nothing yet. Each user calls `release`. */
  static share(options: LanguageServersOptions): LanguageServers {
    const found = shared.get(options.workspace)
    if (found) {
      found.users++
      return found.servers
    }
    const servers = new LanguageServers(options)
    shared.set(options.workspace, { servers, users: 1 })
    return servers
  }

  /** The last user ends the servers. */
  async release(): Promise<void> {
    const found = shared.get(this.workspace)
    if (found?.servers !== this || --found.users > 0) return
    shared.delete(this.workspace)
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
  }

  /** Why a server does not run, a sentence each. */
  get problems(): string[] {
    return [...this.#servers.values()].flatMap(({ isRunning, problem }) =>
      isRunning || problem === undefined ? [] : [problem],
    )
  }

  /** Of the servers that were started. */
  get states(): LanguageServerState[] {
    return [...this.#servers.values()].flatMap(({ state, root }) => {
      const folder = relative(this.workspace, root)
      return state ? [{ ...state, name: folder === '' ? state.name : `${state.name} in ${folder}` }] : []
    })
  }

  /** Calls the listener after each change of `states`. */
  subscribe(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** How often servers have published something after they were waited for. */
  get publishedLate(): number {
    return [...this.#servers.values()].reduce((count, { publishedLate }) => count + publishedLate, 0)
  }

  /** Asks about at most `maxOpenFiles` files. `starts: false` asks only servers that run. */
  async diagnose(paths: readonly string[], { starts }: { starts: boolean }): Promise<Answers> {
    const byServer = new Map<LanguageServer, string[]>()
    const served = new Set<string>()
    for (const path of paths) {
      const server = await this.#serverFor(path)
      if (server) served.add(path)
      if (server && (starts || server.isRunning)) byServer.set(server, [...(byServer.get(server) ?? []), path])
    }
    const found = await Promise.allSettled([...byServer].map(([server, its]) => server.diagnose(its)))
    const answers = new Map(found.flatMap((each) => (each.status === 'fulfilled' ? [...each.value] : [])))
    return { found: answers, unanswered: paths.filter((path) => served.has(path) && !answers.has(path)) }
  }

  async #serverFor(path: string): Promise<LanguageServer | undefined> {
    const { environment, clock = systemClock, box } = this.#options
    const server = await findServer(path, { workspace: this.workspace, path: environment['PATH'] })
    if (!server) return undefined
    const key = `${server.name} ${server.root}`
    const known = this.#servers.get(key)
    if (known || this.#servers.size >= maxServers) return known
    const env = Object.fromEntries(
      passed.flatMap((name) => (environment[name] === undefined ? [] : [[name, environment[name]]])),
    )
    const onChange = (): void => this.#listeners.notify()
    const made = new LanguageServer({ server, workspace: this.workspace, env, clock, onChange, ...(box && { box }) })
    this.#servers.set(key, made)
    return made
  }
}
