import { z } from 'zod'
import { mcpServerName, mcpServerSchema } from '../../mcp/server-settings.ts'

const timeoutMs = z.int().positive().max(600_000)

/** When a hook runs, and what for. */
const hookMoments = {
  sessionStart: 'when a session is opened',
  sessionEnd: 'when a session is closed',
  beforeAgentStart: 'before a run begins',
  turnStart: 'before each request to the model',
  turnEnd: 'after each answer and its tool calls',
  toolCall: 'before a tool call; may block it',
  toolResult: 'after a tool call',
  context: 'before the context is sent',
  beforeCompact: 'before the context is compacted',
} as const

export type HookEvent = keyof typeof hookMoments

const hook = z.strictObject({
  /** The names of tools it is for, with `*` at the end for all that begin so; absent for all. */
  matcher: z.string().min(1).exactOptional(),
  command: z.string().min(1),
  timeoutMs: timeoutMs.exactOptional(),
})

export type HookSettings = z.output<typeof hook>

export const hooks = z.strictObject({
  sessionStart: hooksFor('sessionStart'),
  sessionEnd: hooksFor('sessionEnd'),
  beforeAgentStart: hooksFor('beforeAgentStart'),
  turnStart: hooksFor('turnStart'),
  turnEnd: hooksFor('turnEnd'),
  toolCall: hooksFor('toolCall'),
  toolResult: hooksFor('toolResult'),
  context: hooksFor('context'),
  beforeCompact: hooksFor('beforeCompact'),
} satisfies Record<HookEvent, unknown>)

function hooksFor(event: HookEvent) {
  const words = `Commands run ${hookMoments[event]}: matcher (optional), command, timeoutMs. Lists of all layers are joined.`
  return z.array(hook).describe(words).exactOptional()
}

/** Written as most people know it: `command` makes it a program, `url` an address, and a list of names is what `env` passes on. */
const writtenServer = z.preprocess((written) => {
  if (typeof written !== 'object' || written === null || Array.isArray(written)) return written
  const type = 'command' in written ? 'stdio' : 'url' in written ? 'http' : undefined
  const names = 'env' in written && Array.isArray(written.env) ? { env: { pass: written.env as unknown[] } } : {}
  return { ...(type !== undefined && { type }), ...written, ...names }
}, mcpServerSchema)

export const mcpServers = z.record(mcpServerName, writtenServer)
