import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { helpFor } from '../../command-line/help.ts'
import { isInteractive, write, type Io } from '../../command-line/io.ts'
import { manPage } from '../../command-line/man-page.ts'

export const man: CommandRun = async ({ commands }, io) => {
  const page = manPage(commands)
  if (!isInteractive(io)) await write(io.stdout, page)
  else if (!(await showWithMan(page, io))) {
    await write(io.stdout, helpFor([], { commands, output: io.stdout, env: io.env }))
  }
  return exitCodes.ok
}

/** False where there is no `man`. */
async function showWithMan(page: string, { env }: Io): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-man-'))
  try {
    const file = join(folder, 'tapetree.1')
    await writeFile(file, page)
    // The path has a slash, so every `man` takes it for a file.
    const child = spawn('man', [file], { stdio: 'inherit', env })
    const [code] = (await once(child, 'close')) as [number | null]
    return code === 0
  } catch {
    return false // It could not be started.
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
