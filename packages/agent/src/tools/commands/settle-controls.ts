import type { ToolContext } from '../tool.ts'
import type { CommandSandbox, TakenBack } from './command.ts'

const keep = { label: 'Put them back', description: 'They take effect in other programs.' }
const leave = { label: 'Leave them out', description: 'You can apply them later with /blocked.' }

/**
 * Moves control files that a command made out of the working folder, and asks the user about them. They stay away without an answer. Returns sentences
 * for the result.
 */
export async function settleControls(
  sandbox: CommandSandbox,
  { cwd, spool, callId, ask, append }: Pick<ToolContext, 'cwd' | 'callId' | 'ask' | 'append'> & { spool: string },
): Promise<string[]> {
  const taken = await sandbox.takeBack({ cwd, spool, callId })
  if (!taken) return []
  const problems = unmovedText('The command', taken)
  if (taken.writes.length === 0) return problems
  for (const { id: kept, path: what } of taken.writes)
    await append({ type: 'blocked', blocked: { callId, kind: 'write', what, count: 1, kept } })
  const names = taken.writes.map(({ path }) => path).join(', ')
  const question = `The command made files that control what other programs run: ${names}. They were moved out of the working folder. Put them back?`
  const { text } = await ask({ question, options: [keep, leave] })
  if (text === keep.label) {
    problems.push(...(await taken.putBack((draft) => append(draft))))
    return [`The user agreed to these new files, which control what other programs run: ${names}.`, ...problems]
  }
  await taken.leave()
  return [
    ...problems,
    `These new files control what other programs run, so they were moved out of the working folder: ${names}. Only the user can put them back, with /blocked.`,
  ]
}

/** A sentence for each file that stayed in the working folder. */
export function unmovedText(who: string, { unmoved }: Pick<TakenBack, 'unmoved'>): string[] {
  return unmoved.map(
    ({ path, reason }) =>
      `${who} made ${path}, which controls what other programs run. It could not be moved out of the working folder (${reason}). Check it before you use the folder.`,
  )
}
