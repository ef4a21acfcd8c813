import { systemClock, type Clock } from '../util/clock.ts'
import type { Tool } from '../tools/tool.ts'
import { defaultMcpLimits, type McpLimits } from './limits.ts'
import { McpServer, type McpServerState } from './mcp-server.ts'
import type { PinStore } from './pinned-tools.ts'
import type { ServerPlace } from './resolve-server.ts'
import type { McpServerSettings } from './server-settings.ts'
import type { SignInOptions } from './sign-in.ts'

export interface McpServersOptions extends ServerPlace {
  servers: Readonly<Record<string, McpServerSettings>>
  pins: PinStore
  /** `pin`: a server that was never seen is known from then on. `ask`: it is not even started before the user accepts. */
  firstContact?: 'pin' | 'ask'
  /** Where tokens are kept and a browser can be opened; without it nobody can sign in. */
  signIn?: Pick<SignInOptions, 'store' | 'openUrl'>
  /** Asked before each start of a server: a sentence on why it must not start, or nothing. */
  mayStart?: (server: string) => Promise<string | undefined>
  limits?: Partial<McpLimits>
  clock?: Clock
  observe?: (event: { server: string; state: McpServerState }) => void
}

/** All configured servers. They start side by side in the background; one that fails or hangs holds up nobody. */
export class McpServers implements AsyncDisposable {
  readonly #servers: Map<string, McpServer>

  private constructor(servers: McpServer[]) {
    this.#servers = new Map(servers.map((server) => [server.name, server]))
  }

  /** Waits for nothing: tools appear as servers list them. */
  static start({
    servers,
    limits,
    clock = systemClock,
    observe,
    firstContact = 'pin',
    ...rest
  }: McpServersOptions): McpServers {
    const all = Object.entries(servers).map(([name, settings]) => {
      const { connectTimeoutMs, callTimeoutMs } = settings
      return new McpServer({
        ...rest,
        name,
        settings,
        clock,
        firstContact,
        limits: {
          ...defaultMcpLimits,
          ...limits,
          ...(connectTimeoutMs !== undefined && { connectMs: connectTimeoutMs }),
          ...(callTimeoutMs !== undefined && { callMs: callTimeoutMs }),
        },
        observe: (state) => observe?.({ server: name, state }),
      })
    })
    const started = new McpServers(all)
    for (const server of all) server.start()
    return started
  }

  /** What is offered now, in the order of the settings. */
  tools(): Tool[] {
    return [...this.#servers.values()].flatMap((server) => server.tools)
  }

  states(): { server: string; state: McpServerState }[] {
    return [...this.#servers.values()].map((server) => ({ server: server.name, state: server.state }))
  }

  /** Resolves when no server is starting any more: for those who would rather wait a little than begin without tools. */
  async settled(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.settled()))
  }

  /** The user accepts a changed server as it was shown to them; says whether it still is so. */
  async accept(server: string, sha256: string): Promise<boolean> {
    return (await this.#servers.get(server)?.accept(sha256)) ?? false
  }

  async restart(server: string): Promise<void> {
    await this.#servers.get(server)?.restart()
  }

  /** Ends all of them; resolves when nothing of them is left running. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
