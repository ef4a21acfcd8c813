import { execFileSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { lsTool } from './ls.ts'

async function ls(folder: TestFolder, input: Record<string, unknown> = {}) {
  return callTool(lsTool, input, testContext({ cwd: folder.path }))
}

test('names are sorted, and folders and links are marked', async () => {
  await using folder = await TestFolder.make({ 'b.txt': '', '.hidden': '', 'sub/x': '', 'odd\nname': '' })
  await symlink('../elsewhere', folder.at('link'))
  execFileSync('mkfifo', [folder.at('pipe')])
  expect(await ls(folder)).toEqual({
    content: String.raw`.hidden
b.txt
link -> ../elsewhere
"odd\nname"
pipe (not a regular file)
sub/`,
  })
})

test('an empty folder is reported as empty', async () => {
  await using folder = await TestFolder.make()
  await mkdir(folder.at('sub'))
  expect((await ls(folder, { path: 'sub' })).content).toBe('sub is an empty folder.')
})

test('a file and a missing path are errors', async () => {
  await using folder = await TestFolder.make({ a: '' })
  expect(await ls(folder, { path: 'a' })).toEqual({
    content: 'a is a file. Use read to see what is in it.',
    isError: true,
  })
  expect(await ls(folder, { path: 'nowhere' })).toEqual({ content: 'nowhere does not exist.', isError: true })
})

test('a long list loses its middle, and all of it is kept', async () => {
  await using folder = await TestFolder.make()
  execFileSync('sh', ['-c', 'for n in $(seq 1001 3000); do : > "$n"; done'], { cwd: folder.path })
  const context = testContext({ cwd: folder.path })
  const { content } = await callTool(lsTool, {}, context)
  expect(content).toMatch(/^1001\n1002\n[^]*\[… 1000 lines, 5000 bytes left out here[^]*\n2999\n3000$/)
  expect(
    Buffer.from([...context.blobs.values()][0]!)
      .toString()
      .split('\n').length,
  ).toBe(2000)
})

test('a huge folder is listed in part', async () => {
  await using folder = await TestFolder.make()
  execFileSync('sh', ['-c', 'seq 1 10001 | xargs touch'], { cwd: folder.path })
  expect((await ls(folder)).content).toMatch(/\[There are more than 10000 entries\. Use find with a pattern\.\]$/)
})

test('it is judged as reading the folder', async () => {
  await using folder = await TestFolder.make({ 'real/a': '' })
  await symlink('real', folder.at('link'))
  expect(accessOf(lsTool, { path: 'link' }, { cwd: folder.path })).toEqual([{ type: 'read', path: folder.at('real') }])
})
