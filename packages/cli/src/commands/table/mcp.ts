import type { CommandSpec } from '../../command-line/command.ts'

export const mcpCommands: readonly CommandSpec[] = [
  {
    path: ['mcp', 'list'],
    summary: 'List the MCP servers of this folder, and whether their tools can be used',
    description: 'Starts each server that you have accepted, and stops it again.',
    load: async () => (await import('../setup/mcp.ts')).listServers,
  },
  {
    path: ['mcp', 'accept'],
    summary: 'Accept an MCP server whose program, address or tools have changed',
    description:
      'Shows what is different, with the new descriptions of the tools, and asks. From then on the server is known as it is now; sessions that are open use its tools within a few seconds.',
    positionals: [{ name: 'server', description: 'its name in the settings', required: true }],
    options: [{ name: 'yes', short: 'y', description: 'accept without asking' }],
    examples: [{ command: 'tapetree mcp accept tickets', says: 'see what is different, and accept it' }],
    load: async () => (await import('../setup/mcp.ts')).acceptServer,
  },
]
