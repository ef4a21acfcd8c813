import { systemClock, type Clock } from '@tapetree/session/util/wait'
import type { BoxProgram } from '../tools/commands/program-box.ts'
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
  /** `pin`: an unknown server is pinned at first contact. `ask`: it is not even started until the user accepts. */
  firstContact?: 'pin' | 'ask'
  /** Token storage and browser access; without it users cannot sign in. */
  signIn?: Pick<SignInOptions, 'store' | 'openUrl'>
  /** Called before each start of a server: returns a sentence if it must not start. */
  mayStart?: (server: string) => Promise<string | undefined>
  /** The sandbox of a server that is a program. Absent: it runs outside. */
  box?: BoxProgram
  limits?: Partial<McpLimits>
  clock?: Clock
  observe?: (event: { server: string; state: McpServerState }) => void
}

/** All configured servers. They start concurrently in the background; one that fails or hangs delays no other. */
export class McpServers implements AsyncDisposable {
  readonly #servers: Map<string, McpServer>

  private constructor(servers: McpServer[]) {
    this.#servers = new Map(servers.map((server) => [server.name, server]))
  }

  /** Returns at once: tools appear as servers list them. */
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

  /** The current tools, in the order of the settings. */
  tools(): Tool[] {
    return [...this.#servers.values()].flatMap((server) => server.tools)
  }

  states(): { server: string; state: McpServerState }[] {
    return [...this.#servers.values()].map((server) => ({ server: server.name, state: server.state }))
  }

  /** Resolves when no server is starting: for callers that prefer to wait for tools. */
  async settled(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.settled()))
  }

  /** Accepts a changed server as shown to the user; returns whether that is still current. */
  async accept(server: string, sha256: string): Promise<boolean> {
    return (await this.#servers.get(server)?.accept(sha256)) ?? false
  }

  async restart(server: string): Promise<void> {
    await this.#servers.get(server)?.restart()
  }

  /** Ends all servers; resolves when none of their processes is left. */
  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}
