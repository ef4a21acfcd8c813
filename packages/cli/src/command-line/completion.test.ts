import { execFile, spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commands } from '../cli.ts'
import { completionScript } from './completion.ts'
import { fakeHome } from '../testing/fake-home.ts'

/** What bash completes after these words; `tapetree` is a program that prints hostile words. */
async function offered(...words: string[]): Promise<string[]> {
  await using home = await fakeHome()
  const bin = join(home.cwd, 'bin')
  await mkdir(bin)
  await writeFile(join(bin, 'tapetree'), `#!/bin/sh\nprintf '%s\\n' 'fake/model-1\tOne' '$(touch ran)/x\tTwo'\n`)
  await chmod(join(bin, 'tapetree'), 0o755)
  await writeFile(join(home.cwd, 'completion.bash'), completionScript('bash', commands))
  const ask = `
    source ./completion.bash
    COMP_WORDS=(tapetree "$@") COMP_CWORD=$#
    _tapetree
    printf '%s\\n' "\${COMPREPLY[@]}"; test ! -e ran`
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', ask, 'bash', ...words], {
    cwd: home.cwd,
    env: { ...home.env, PATH: `${bin}:${home.env['PATH']}` },
  })
  return stdout.split('\n').filter(Boolean)
}

test('bash completes commands, options, choices, files and printed words, and never runs printed words', async () => {
  expect(await offered('conf')).toEqual(['config'])
  expect(await offered('config', '')).toEqual(['show', 'path'])
  expect(await offered('doctor', '--f')).toEqual(['--fix'])
  expect(await offered('--theme', 'li')).toEqual(['light'])
  expect(await offered('models', '--provider', '')).toEqual(['fake/model-1', '$(touch ran)/x'])
})

test.each(['bash', 'zsh', 'fish'] as const)('%s accepts the script', async (shell) => {
  await using home = await fakeHome()
  const file = join(home.cwd, 'completion')
  const script = completionScript(shell, commands)
  await writeFile(file, script)
  expect(script).toContain('tapetree completion --words')
  const { error, status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
  // If the shell is not installed, only the text above is checked.
  if (error === undefined) expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})
