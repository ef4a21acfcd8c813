import { describeChange, McpServers, PinFile, sandboxesOf, type McpServerState } from '@tapetree/agent/mcp'
import { configFolder } from '@tapetree/agent/settings'
import type { Io } from '../../command-line/io.ts'
import { placesOf, sandboxPlaceOf } from '../../host/places.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import type { ReviewedServer, ServerReview } from '../../tui/chat-services.ts'

/**
 * Starts the MCP servers of a folder to look at them, in the same sandbox as in a session. A server that is unknown is not started before the
 * user accepts it.
 */
export async function reviewServers(io: Pick<Io, 'home' | 'env'>, cwd: string): Promise<ServerReview> {
  const { home, env } = io
  const { settings, trust } = await surroundingsOf(io, { cwd })
  const place = { home, env, workingFolder: cwd, projectRoot: trust.project.root }
  const problems: string[] = []
  const { box } = sandboxesOf(sandboxPlaceOf(placesOf(io)), {
    ...place,
    settings,
    onMissing: (message) => problems.push(message),
  })
  const servers = McpServers.start({
    servers: settings.values.mcpServers,
    cwd,
    environment: env,
    pins: new PinFile(configFolder(io)),
    firstContact: 'ask',
    limits: { maxRestarts: 0 },
    box,
  })
  await servers.settled()
  return {
    servers: servers.states().map(({ server, state }) => reviewed(server, state, { problems, tools: servers.tools() })),
    accept: async ({ name, sha256 }) => {
      if (sha256 === undefined || !(await servers.accept(name, sha256))) return false
      await servers.settled()
      // A server that was unknown is started only now, and may offer tools that the user has not seen.
      return servers.states().find(({ server }) => server === name)?.state.type !== 'changed'
    },
    [Symbol.asyncDispose]: () => servers.close(),
  }
}

interface Found {
  problems: readonly string[]
  /** Of all servers. */
  tools: readonly { name: string; description: string }[]
}

function reviewed(name: string, state: McpServerState, { problems, tools }: Found): ReviewedServer {
  const base = { name, state: state.type, tools: [] }
  switch (state.type) {
    case 'changed': {
      const isNew = new Set([...state.change.changed, ...state.change.added])
      const origin = state.change.isOriginChanged ? ` ${state.change.pin.origin}` : ''
      return {
        ...base,
        says: `${describeChange(state.change)}${origin}`,
        tools: state.tools.map((tool) => ({
          name: tool.name,
          description: tool.description,
          isNew: isNew.has(tool.name),
        })),
        sha256: state.change.sha256,
      }
    }
    case 'failed':
      return { ...base, says: [state.reason, ...problems].join(' ') }
    case 'ready':
      return {
        ...base,
        says: state.problems.join(' '),
        tools: tools
          .filter((tool) => tool.name.startsWith(`mcp__${name}__`))
          .map((tool) => ({ name: tool.name, description: tool.description, isNew: false })),
      }
    case 'signing_in':
      return { ...base, says: 'It requires you to sign in.' }
    case 'starting':
    case 'closed':
      return { ...base, says: '' }
    default:
      return state satisfies never
  }
}
