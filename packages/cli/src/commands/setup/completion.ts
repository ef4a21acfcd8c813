import { textOption, type CommandRun } from '../../command-line/command.ts'
import { completionScript, shells } from '../../command-line/completion.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { write } from '../../command-line/io.ts'

export const completion: CommandRun = async (invocation, io) => {
  const kind = textOption(invocation, 'words')
  if (kind !== undefined) {
    const { completionWords } = await import('../../setup/completion-words.ts')
    await write(io.stdout, await completionWords(kind, io))
    return exitCodes.ok
  }
  const [typed] = invocation.positionals
  const shell = shells.find((each) => each === typed)
  if (shell === undefined) {
    const wrong = typed === undefined ? '' : `, not ${JSON.stringify(typed)}.${didYouMean(typed, shells)}`
    throw usageFailure(`tapetree completion needs the shell: bash, zsh or fish${wrong || '.'}`, [
      'tapetree completion bash',
    ])
  }
  await write(io.stdout, completionScript(shell, invocation.commands))
  return exitCodes.ok
}
