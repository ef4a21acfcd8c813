import { textOption, flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { helpFor } from '../../command-line/help.ts'
import { write, isInteractive, printJson, type Io } from '../../command-line/io.ts'
import { completionScript, shells } from '../../command-line/completion.ts'
import { didYouMean } from '../../text/did-you-mean.ts'
import { usageFailure } from '../../command-line/failure.ts'
import { lendTerminal } from '../../util/lend-terminal.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manPage } from '../../command-line/man-page.ts'
import { version } from '../../command-line/version.ts'

export const help: CommandRun = async ({ positionals, commands }, { stdout, env }) => {
  await write(stdout, helpFor(positionals, { commands, output: stdout, env }))
  return exitCodes.ok
}

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
    throw usageFailure(`tapetree completion needs a shell: bash, zsh or fish${wrong || '.'}`, [
      'tapetree completion bash',
    ])
  }
  await write(io.stdout, completionScript(shell, invocation.commands))
  return exitCodes.ok
}

export const man: CommandRun = async ({ commands }, io) => {
  const page = manPage(commands)
  if (!isInteractive(io)) await write(io.stdout, page)
  else if (!(await showWithMan(page, io))) {
    await write(io.stdout, helpFor([], { commands, output: io.stdout, env: io.env }))
  }
  return exitCodes.ok
}

/** False if there is no `man`. */
async function showWithMan(page: string, { env }: Io): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-man-'))
  try {
    const file = join(folder, 'tapetree.1')
    await writeFile(file, page)
    // The path has a slash, so every `man` treats it as a file.
    return await lendTerminal(async () => {
      const child = spawn('man', [file], { stdio: 'inherit', env })
      const [code] = (await once(child, 'close')) as [number | null]
      return code === 0
    })
  } catch {
    return false // It could not be started.
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const printVersion: CommandRun = async (invocation, io) => {
  const { node } = process.versions
  if (flag(invocation, 'json')) await printJson(io, { version, node })
  else await write(io.stdout, `${version}\n`)
  return exitCodes.ok
}
