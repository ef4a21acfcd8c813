import { isObject } from '@tapetree/session/util/json'
import { createHash } from 'node:crypto'
import type { Tool, ToolContext } from '../tools/tool.ts'
import type { CallResult } from './connection.ts'
import { withoutHidden } from './foreign-text.ts'
import type { McpLimits } from './limits.ts'
import type { RemoteTool } from './remote-tool.ts'
import { ServerProblem } from './server-problem.ts'
import { toolOutput } from './tool-result.ts'

export interface McpToolsOptions {
  /** The server's name in the settings. */
  server: string
  limits: McpLimits
  call: (tool: RemoteTool, input: Record<string, unknown>, signal: AbortSignal) => Promise<CallResult>
}

/** Adapts the tools of a server. Their effects are unknown, so the gate asks unless a rule names them. */
export function mcpTools(remote: readonly RemoteTool[], { server, limits, call }: McpToolsOptions): Tool[] {
  const names = toolNames(server, remote)
  return remote.map((tool, index): Tool => {
    const name = names[index] as string
    return {
      name,
      description: tool.description || `The tool ${withoutHidden(tool.name)} of the server ${server}.`,
      inputSchema: tool.inputSchema,
      // A server's own claim to be read-only is not trusted.
      readOnly: false,
      replay: 'never',
      deadlineMs: limits.callMs,
      check: (input) => {
        if (!isObject(input)) return `The input of ${name} is not an object.`
        const problem = tool.check(input)
        if (problem !== undefined) return `The input of ${name} is not valid. ${problem}`
        return { access: [{ type: 'tool', name, readOnly: false }], run: (context) => run(input, context) }
      },
    }

    async function run(input: Record<string, unknown>, context: ToolContext) {
      try {
        return await toolOutput(await call(tool, input, context.signal), context, limits)
      } catch (error) {
        if (error instanceof ServerProblem) return { content: error.message, isError: true }
        throw error
      }
    }
  })
}

const maxNameLength = 64

/**
 * Unique names that every provider accepts. A name that had to be changed gets a mark if another tool wants the same
 * one. The order of the list does not matter: the user's rules are about names.
 */
export function toolNames(server: string, tools: readonly { name: string }[]): string[] {
  const prefix = `mcp__${server}__`
  const wanted = tools.map(({ name }) => prefix + name.replace(/[^A-Za-z0-9_-]/g, '_'))
  return wanted.map((name, index) => {
    const own = tools[index]?.name ?? ''
    const isUnique = wanted.indexOf(name) === wanted.lastIndexOf(name)
    if (name.length <= maxNameLength && (isUnique || name === prefix + own)) return name
    const mark = `_${createHash('sha256').update(own).digest('hex').slice(0, 8)}`
    return name.slice(0, maxNameLength - mark.length) + mark
  })
}
