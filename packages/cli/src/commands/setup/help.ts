import type { CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { helpFor } from '../../command-line/help.ts'
import { write } from '../../command-line/io.ts'

export const help: CommandRun = async ({ positionals, commands }, { stdout, env }) => {
  await write(stdout, helpFor(positionals, { commands, output: stdout, env }))
  return exitCodes.ok
}
