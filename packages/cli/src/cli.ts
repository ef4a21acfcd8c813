import { commands } from './commands/table/commands.ts'
import { exitCodes, type ExitCode } from './command-line/exit-code.ts'
import { write, type Io } from './command-line/io.ts'
import { parse, wantsJson } from './command-line/parse.ts'
import { reportFailure } from './command-line/report-failure.ts'

/** One command line from its words to its exit code. It never throws: what went wrong is said on stderr. */
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
