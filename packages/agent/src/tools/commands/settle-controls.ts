import type { ToolContext } from '../tool.ts'
import type { CommandSandbox } from './command.ts'

const keep = { label: 'Put them back', description: 'They take effect in other programs.' }
const leave = { label: 'Leave them out', description: 'They stay where they were moved to.' }

/**
 * Moves control files that a command made out of the working folder, and asks the user about them. They stay away without an answer. Returns sentences
 * for the result.
 */
export async function settleControls(
  sandbox: CommandSandbox,
  { cwd, spool, ask }: Pick<ToolContext, 'cwd' | 'ask'> & { spool: string },
): Promise<string[]> {
  const taken = await sandbox.takeBack({ cwd, spool })
  if (!taken) return []
  const names = taken.paths.join(', ')
  const question = `The command made files that control what other programs run: ${names}. They were moved out of the working folder, to ${taken.folder}. Put them back?`
  const { text } = await ask({ question, options: [keep, leave] })
  if (text === keep.label) {
    await taken.putBack()
    return [`The user agreed to these new files, which control what other programs run: ${names}.`]
  }
  await taken.leave()
  return [
    `These new files control what other programs run, so they were moved out of the working folder, to ${taken.folder}: ${names}.`,
  ]
}
