import type { TUI } from '@earendil-works/pi-tui'
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lendTerminal } from '../../util/lend-terminal.ts'
import type { Composer } from './composer.ts'

interface ExternalEditorOptions {
  /** As in `EDITOR`: a command, possibly with arguments. */
  command: string
  cwd: string
  env: Readonly<Record<string, string | undefined>>
}

/** Opens the text of the composer in the user's editor, which takes over the terminal. */
export async function editComposer({
  tui,
  composer,
  ...options
}: ExternalEditorOptions & { tui: TUI; composer: Pick<Composer, 'text'> }): Promise<void> {
  tui.stop({ preserveScreen: true })
  try {
    composer.text = await editOutside(composer.text, options)
  } finally {
    tui.start()
    tui.requestRender(true)
  }
}

/** Uses a file that other users cannot read. */
async function editOutside(text: string, { command, cwd, env }: ExternalEditorOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-edit-'))
  try {
    const file = join(folder, 'message.md')
    await writeFile(file, text, { mode: 0o600 })
    await lendTerminal(() => runEditor(command, file, { cwd, env }))
    const edited = await readFile(file, 'utf8')
    return edited.replace(/\n$/, '')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function runEditor(command: string, file: string, options: Omit<ExternalEditorOptions, 'command'>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // The command may have arguments, as in git; the file is an argument and never part of the script. The trap keeps the shell alive if the
  // editor survives an interrupt.
  const child = spawn('/bin/sh', ['-c', `trap : INT; ${command} "$1"`, 'sh', file], {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: 'inherit',
  })
  child.once('error', reject)
  child.once('exit', (code, signal) => {
    if (code === 0) resolve()
    else
      reject(
        new Error(
          `The editor ${JSON.stringify(command)} ended with ${signal ?? `exit code ${code}`}. The text is unchanged.`,
        ),
      )
  })
  return promise
}
