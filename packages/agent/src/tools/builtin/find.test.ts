import { symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { findTool } from './find.ts'

const files = {
  '.gitignore': 'dist/\n*.log\n!keep.log\n',
  '.git/HEAD': '',
  '.env.example': '',
  'dist/a.ts': '',
  'a.log': '',
  'keep.log': '',
  'src/a.ts': '',
  'src/deep/b.test.ts': '',
  'with space.ts': '',
}

async function find(folder: TestFolder, input: Record<string, unknown>) {
  return callTool(findTool, input, testContext({ cwd: folder.path }))
}

test.each([
  ['*.ts', 'src/a.ts\nsrc/deep/b.test.ts\nwith space.ts'],
  ['src/**/*.ts', 'src/a.ts\nsrc/deep/b.test.ts'],
  ['src/*.ts', 'src/a.ts'],
  ['.*', '.env.example\n.gitignore'],
  ['*.log', 'keep.log'],
  ['*', '.env.example\n.gitignore\nkeep.log\nsrc/a.ts\nsrc/deep/b.test.ts\nwith space.ts'],
  ['*.py', 'No files match.'],
  ['--pre=x', 'No files match.'],
])('%j finds files subject to ignore rules, sorted by path', async (pattern, expected) => {
  await using folder = await TestFolder.make(files)
  expect(await find(folder, { pattern })).toEqual({ content: expected })
})

test('a pattern is relative to the path, and the result to the working folder', async () => {
  await using folder = await TestFolder.make(files)
  expect((await find(folder, { pattern: 'deep/*', path: 'src' })).content).toBe('src/deep/b.test.ts')
})

test('it stops at the limit, with a note', async () => {
  await using folder = await TestFolder.make(files)
  expect((await find(folder, { pattern: '*.ts', limit: 2 })).content).toBe(
    'src/a.ts\nsrc/deep/b.test.ts\n[Stopped after 2 files. Narrow the pattern, or raise the limit.]',
  )
  expect((await find(folder, { pattern: '*.ts', limit: 3 })).content).not.toContain('Stopped')
})

test('links are neither followed nor listed, and odd names are quoted', async () => {
  await using folder = await TestFolder.make({ 'in/a\tb': '', 'out/secret': '' })
  await symlink(folder.at('out'), folder.at('in/link'))
  expect((await find(folder, { pattern: '**', path: 'in' })).content).toBe(String.raw`"in/a\tb"`)
})

test('a file, a missing folder and an endless pattern are errors', async () => {
  await using folder = await TestFolder.make({ a: '' })
  expect(await find(folder, { pattern: '*', path: 'a' })).toEqual({
    content: 'a is a file; find searches a folder.',
    isError: true,
  })
  expect(await find(folder, { pattern: '*', path: 'nowhere' })).toMatchObject({ isError: true })
  expect(await find(folder, { pattern: '{a,b}'.repeat(20) })).toMatchObject({
    content: expect.stringContaining('alternatives'),
    isError: true,
  })
})

test('it is judged as reading its start folder', async () => {
  await using folder = await TestFolder.make()
  expect(accessOf(findTool, { pattern: '*', path: 'x/../..' }, { cwd: folder.at('y') })).toEqual([
    { type: 'read', path: folder.path },
  ])
})
