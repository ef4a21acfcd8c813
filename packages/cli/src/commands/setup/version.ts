import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { write } from '../../command-line/io.ts'
import { printJson } from '../../command-line/print-json.ts'
import { version } from '../../command-line/version.ts'

export const printVersion: CommandRun = async (invocation, io) => {
  const { node } = process.versions
  if (flag(invocation, 'json')) await printJson(io, { version, node })
  else await write(io.stdout, `${version}\n`)
  return exitCodes.ok
}
