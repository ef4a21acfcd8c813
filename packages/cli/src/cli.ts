import { exitCodes, type ExitCode } from './command-line/exit-code.ts'
import { write, OutputError, stylesFor, type Io } from './command-line/io.ts'
import { parse, wantsJson } from './command-line/parse.ts'
import { Failure, failureJson } from './command-line/failure.ts'
import { harmless } from './text/harmless.ts'
import type { CommandSpec } from './command-line/command.ts'
import { acpCommands } from './commands/table/acp.ts'
import { chatCommands } from './commands/table/chat.ts'
import { importCommands, logCommands, sessionCommands, playCommands, usageCommands } from './commands/table/sessions.ts'
import { mcpCommands, setupCommands } from './commands/table/setup.ts'
import { runCommands } from './commands/table/run.ts'
import { serveCommands } from './commands/table/serve.ts'
import { tokenCommands } from './commands/table/tokens.ts'
import { workspaceCommands } from './commands/table/workspace.ts'

/** Runs one command line and returns its exit code. Never throws: errors go to stderr. */
export async function runCli(args: readonly string[], io: Io): Promise<ExitCode> {
  try {
    const parsed = parse(args, commands)
    if (parsed.type === 'help') {
      const { helpFor } = await import('./command-line/help.ts')
      await write(io.stdout, helpFor(parsed.path, { commands, output: io.stdout, env: io.env }))
      return exitCodes.ok
    }
    const run = await parsed.invocation.spec.load()
    return await run(parsed.invocation, io)
  } catch (error) {
    return reportFailure(error, io, { asJson: wantsJson(args) })
  }
}

/** Prints on stderr what failed, why, and what to do next. Returns the exit code. */
export async function reportFailure(
  error: unknown,
  io: Pick<Io, 'stderr' | 'env' | 'signal'>,
  { asJson }: { asJson: boolean },
): Promise<ExitCode> {
  // After `tapetree … | head`, `head` has read all it needs: no error.
  if (error instanceof OutputError && error.isUnread) return exitCodes.ok
  const failure = error instanceof Failure ? error : (await import('./command-line/failure-of.ts')).failureOf(error)
  const isOwnWish = failure.code === exitCodes.interrupted && !asJson
  if (!isOwnWish) await write(io.stderr, asJson ? `${failureJson(failure)}\n` : textOf(failure, io)).catch(() => {})
  return failure.code
}

function textOf({ message, why, next }: Failure, { stderr, env }: Pick<Io, 'stderr' | 'env'>): string {
  const { red, dim, cyan } = stylesFor(stderr, env)
  const lines = [`${red('tapetree:')} ${harmless(message)}`]
  if (why !== undefined) lines.push(harmless(why))
  if (next.length > 0) lines.push(dim('Try:'), ...next.map((command) => `  ${cyan(harmless(command))}`))
  return `${lines.join('\n')}\n`
}

/** Every command. Help, completion, the man page and the reference are generated from this table. */
export const commands: readonly CommandSpec[] = [
  ...chatCommands,
  ...runCommands,
  ...acpCommands,
  ...serveCommands,
  ...tokenCommands,
  ...sessionCommands,
  ...importCommands,
  ...playCommands,
  ...logCommands,
  ...mcpCommands,
  ...usageCommands,
  ...workspaceCommands,
  ...setupCommands,
]
