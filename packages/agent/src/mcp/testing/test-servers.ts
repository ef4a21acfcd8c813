import { fileURLToPath } from 'node:url'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import type { McpServerState } from '../mcp-server.ts'
import { McpServers, type McpServersOptions } from '../mcp-servers.ts'
import { mcpServersSchema } from '../server-settings.ts'
import { memoryPins } from './memory-stores.ts'

/** The settings of a server program: its behavior, its note file, and additional tools. */
export function stdioServer(mode: 'serve' | 'exit' | 'mute', ...args: string[]): object {
  const file = fileURLToPath(new URL('stdio-server.ts', import.meta.url))
  return { type: 'stdio', command: process.execPath, args: [file, mode, ...args] }
}

export interface TestServers extends AsyncDisposable {
  servers: McpServers
  events: { server: string; state: McpServerState }[]
  /** Resolves when the server is, or already is, in this state. */
  reached<Type extends McpServerState['type']>(server: string, type: Type): Promise<McpServerState & { type: Type }>
  /** Resolves when the server next enters this state. */
  comes<Type extends McpServerState['type']>(server: string, type: Type): Promise<McpServerState & { type: Type }>
}

/** A clock that skips pauses between attempts; time limits are real. */
const hurriedClock: Clock = {
  now: () => systemClock.now(),
  wait: (ms, signal) => systemClock.wait(ms <= 4000 ? 0 : ms, signal),
}

/** Starts servers from settings and records their states. */
export function startServers(
  settings: Record<string, object>,
  options: Partial<Omit<McpServersOptions, 'servers'>> = {},
): TestServers {
  const events: TestServers['events'] = []
  const watchers = new Set<(event: TestServers['events'][number]) => void>()
  const servers = McpServers.start({
    cwd: process.cwd(),
    environment: process.env,
    pins: memoryPins(),
    clock: hurriedClock,
    ...options,
    servers: mcpServersSchema.parse(settings),
    observe: (event) => {
      events.push(event)
      for (const watcher of watchers) watcher(event)
    },
  })
  const comes: TestServers['comes'] = (server, type) =>
    new Promise((resolve) => {
      const watcher = (event: TestServers['events'][number]): void => {
        if (event.server !== server || event.state.type !== type) return
        watchers.delete(watcher)
        resolve(event.state as never)
      }
      watchers.add(watcher)
    })
  return {
    servers,
    events,
    comes,
    reached: (server, type) => {
      const state = servers.states().find((each) => each.server === server)?.state
      return state?.type === type ? Promise.resolve(state as never) : comes(server, type)
    },
    [Symbol.asyncDispose]: () => servers.close(),
  }
}
