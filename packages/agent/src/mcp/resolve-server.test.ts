import { chmod } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { resolveServer } from './resolve-server.ts'
import { mcpServerSchema } from './server-settings.ts'

test('the origin covers everything that decides what runs or which server is used, but not values of the environment', async () => {
  await using folder = await TestFolder.make({ 'bin/tool': '#!/bin/sh\n', 'other/tool': '#!/bin/sh\n' })
  await chmod(folder.at('bin/tool'), 0o755)
  await chmod(folder.at('other/tool'), 0o755)
  const origin = async (settings: object, path = folder.at('bin'), token = 'a'): Promise<string> => {
    const place = { cwd: folder.path, environment: { PATH: path, TOKEN: token } }
    return (await resolveServer(mcpServerSchema.parse(settings), place)).origin
  }
  const program = { type: 'stdio', command: 'tool', args: ['x'], env: { pass: ['TOKEN'], set: { A: '1' } } }
  const first = await origin(program)
  expect(await origin(program, folder.at('bin'), 'another token')).toBe(first)
  const others = [
    await origin(program, folder.at('other')),
    await origin({ ...program, args: ['y'] }),
    await origin({ ...program, env: { pass: ['TOKEN', 'MORE'], set: { A: '1' } } }),
    await origin({ ...program, env: { pass: ['TOKEN'], set: { A: '2' } } }),
    await origin({ ...program, cwd: 'bin', command: '../bin/tool' }),
    await origin({ type: 'http', url: 'https://example.com/a' }),
    await origin({ type: 'http', url: 'https://example.com/b' }),
    await origin({ type: 'http', url: 'https://example.com/a', headers: { 'X-A': '1' } }),
  ]
  expect(new Set([first, ...others]).size).toBe(9)
})

test('a program is looked up in absolute folders only, and must be executable', async () => {
  await using folder = await TestFolder.make({ tool: '#!/bin/sh\n', 'plain/tool': 'text' })
  await chmod(folder.at('tool'), 0o755)
  const settings = mcpServerSchema.parse({ type: 'stdio', command: 'tool' })
  const find = (path: string) => resolveServer(settings, { cwd: folder.path, environment: { PATH: path } })
  for (const path of ['.', '', ':', folder.at('plain'), '/no/such/folder']) {
    await expect(find(path)).rejects.toThrow('There is no program tool.')
  }
  expect(await find(`.:${folder.path}`)).toMatchObject({ file: folder.at('tool') })
})
