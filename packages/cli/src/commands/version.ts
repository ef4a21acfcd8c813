import { flag, type CommandRun } from '../command.ts'
import { exitCodes } from '../exit-code.ts'
import { write } from '../io.ts'
import { printJson } from '../print-json.ts'
import { version } from '../version.ts'

export const printVersion: CommandRun = async (invocation, io) => {
  const { node } = process.versions
  if (flag(invocation, 'json')) await printJson(io, { version, node })
  else await write(io.stdout, `${version}\n`)
  return exitCodes.ok
}
