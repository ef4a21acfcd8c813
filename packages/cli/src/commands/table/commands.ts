import type { CommandSpec } from '../../command-line/command.ts'
import { chatCommands } from './chat.ts'
import { logCommands } from './log.ts'
import { mcpCommands } from './mcp.ts'
import { playCommands } from './play.ts'
import { runCommands } from './run.ts'
import { serveCommands } from './serve.ts'
import { sessionCommands } from './sessions.ts'
import { setupCommands } from './setup.ts'
import { usageCommands } from './usage.ts'

/** Every command there is. Help, completion, man page and the reference are made of this table. */
export const commands: readonly CommandSpec[] = [
  ...chatCommands,
  ...runCommands,
  ...serveCommands,
  ...sessionCommands,
  ...playCommands,
  ...logCommands,
  ...mcpCommands,
  ...usageCommands,
  ...setupCommands,
]
