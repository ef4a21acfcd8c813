import type { CommandRun } from '../command.ts'
import { exitCodes } from '../exit-code.ts'
import { helpFor } from '../help.ts'
import { write } from '../io.ts'

export const help: CommandRun = async ({ positionals, commands }, { stdout, env }) => {
  await write(stdout, helpFor(positionals, { commands, output: stdout, env }))
  return exitCodes.ok
}
