import { execFile, spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { testHome } from './chat.ts'
import { builtCommand } from './command-path.ts'
import { startTerminal } from './terminal.ts'

const lacks = (shell: string): boolean => spawnSync(shell, ['--version']).error !== undefined

/** A home with `tapetree` on its path, as it is after an installation. */
async function homeWithCommand(): Promise<FakeHome> {
  const home = await testHome()
  const bin = join(home.home, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'tapetree'), `#!/bin/sh\nexec ${builtCommand.map((word) => `'${word}'`).join(' ')} "$@"\n`)
  await chmod(join(bin, 'tapetree'), 0o755)
  home.env['PATH'] = `${bin}:${home.env['PATH']}`
  return home
}

test.skipIf(lacks('fish'))('fish completes commands, options, choices and models', async () => {
  const { cwd, env } = await homeWithCommand()
  const offered = async (line: string): Promise<string[]> => {
    const ask = 'tapetree completion fish | source; complete -C $argv[1]'
    const { stdout } = await promisify(execFile)('fish', ['--no-config', '-c', ask, line], { cwd, env })
    // Each with what it says, behind a tab.
    return stdout.split('\n').flatMap((word) => word.split('\t')[0] || [])
  }
  expect(await offered('tapetree conf')).toEqual(['config'])
  expect(await offered('tapetree config ')).toEqual(expect.arrayContaining(['show', 'path']))
  expect(await offered('tapetree doctor --f')).toEqual(['--fix'])
  expect(await offered('tapetree --theme li')).toEqual(['light'])
  expect(await offered('tapetree run --model fake/')).toEqual(['fake/model-1'])
})

test.skipIf(lacks('zsh'))('zsh completes commands, options, choices and models', async () => {
  const home = await homeWithCommand()
  const zsh = startTerminal({ home, command: ['zsh', '-f'], env: { PS1: 'ready> ' } })
  onTestFinished(() => zsh[Symbol.asyncDispose]())
  await zsh.waitFor('ready>')
  zsh.type('autoload -U compinit; compinit -u; source <(tapetree completion zsh); print loaded\r')
  await zsh.waitFor(/^loaded/m)
  for (const [typed, wanted] of [
    ['tapetree conf', 'tapetree config'],
    ['tapetree doctor --f', 'tapetree doctor --fix'],
    ['tapetree --theme li', 'tapetree --theme light'],
    ['tapetree run --model fake/', 'tapetree run --model fake/model-1'],
  ] as const) {
    zsh.type(typed)
    zsh.press('tab')
    await zsh.waitFor(wanted)
    zsh.press('ctrl-u')
  }
})
