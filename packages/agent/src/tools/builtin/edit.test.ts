import { createHash } from 'node:crypto'
import { chmod, readdir, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { editTool } from './edit.ts'
import { writeTool } from './write.ts'

async function edit(folder: TestFolder, input: Record<string, unknown>) {
  const context = testContext({ cwd: folder.path })
  return { ...(await callTool(editTool, { path: 'a', ...input }, context)), context }
}

test('a text is replaced, both contents are kept and the result is a unified diff', async () => {
  await using folder = await TestFolder.make({ a: 'one\ntwo\nthree\n' })
  const { content, context } = await edit(folder, { oldText: 'two', newText: '2' })
  expect(content).toBe(
    ['Edited a: 1 replacement.', '', '--- a', '+++ a', '@@ -1,3 +1,3 @@', ' one', '-two', '+2', ' three'].join('\n'),
  )
  expect(await folder.read('a')).toBe('one\n2\nthree\n')
  const [before, after] = ['one\ntwo\nthree\n', 'one\n2\nthree\n'].map((text) =>
    createHash('sha256').update(text).digest('hex'),
  )
  expect(context.steps).toEqual([`blob ${before}`, `blob ${after}`, 'record file_write'])
  expect(context.records).toEqual([
    {
      type: 'file_write',
      fileWrite: {
        path: folder.at('a'),
        size: 12,
        sha256Before: before,
        sha256After: after,
        runId: 'run-1',
        callId: 'call-1',
      },
    },
  ])
  expect(await readdir(folder.path)).toEqual(['a'])
})

test('every place is changed when that is asked for', async () => {
  await using folder = await TestFolder.make({ a: 'x x\nx\n' })
  expect((await edit(folder, { oldText: 'x', newText: 'yy', replaceAll: true })).content).toMatch(
    /^Edited a: 3 replacements\./,
  )
  expect(await folder.read('a')).toBe('yy yy\nyy\n')
})

test('byte order mark, Windows line ends, encoding and mode are kept', async () => {
  await using folder = await TestFolder.make({ a: '\ufeffone\r\ntwo\r\nthree\n' })
  await chmod(folder.at('a'), 0o750)
  await edit(folder, { oldText: 'one\ntwo\n', newText: 'one\nand\ntwo\n' })
  expect(await folder.read('a')).toBe('\ufeffone\r\nand\r\ntwo\r\nthree\n')
  expect((await stat(folder.at('a'))).mode & 0o777).toBe(0o750)

  const wide = Buffer.from('\ufeffgrün\r\nx\r\n', 'utf16le').swap16()
  await writeFile(folder.at('a'), wide)
  await edit(folder, { oldText: 'grün\nx', newText: 'blau\n🎈' })
  expect(await stat(folder.at('a'))).toMatchObject({ size: 2 + 4 * 2 + 4 + 4 + 4 })
  const { content } = await edit(folder, { oldText: 'blau\n🎈', newText: '' })
  expect(content).toContain('-blau')
})

describe('nothing is changed', () => {
  async function refused(content: string | Uint8Array, input: Record<string, unknown>) {
    await using folder = await TestFolder.make({ a: content })
    const result = await edit(folder, input)
    expect(result.isError).toBe(true)
    expect(result.context.steps).toEqual([])
    expect(await folder.read('a')).toBe(Buffer.from(content).toString())
    return result.content
  }

  test('where the text is not there', async () => {
    expect(await refused('const total = 1\n', { oldText: 'const totals = 2', newText: '' })).toBe(
      'a was not changed. oldText is not in the file. The most similar line is line 1: "const total = 1". ' +
        'Read the file again and copy the text exactly.',
    )
  })

  test('where the text is there more than once', async () => {
    expect(await refused('x\ny\nx\n', { oldText: 'x', newText: 'z' })).toBe(
      'a was not changed. oldText is there 2 times, at lines 1, 3. ' +
        'Give more of the text around the one you mean, or set replaceAll to change them all.',
    )
  })

  test('where both texts are the same, or the old one is empty', async () => {
    expect(await refused('x', { oldText: 'x', newText: 'x' })).toContain('nothing would change')
    expect(await refused('x', { oldText: '', newText: 'x' })).toContain('To create a file use write.')
  })

  test('where the file is no text', async () => {
    expect(await refused(Buffer.from([0, 1]), { oldText: 'x', newText: 'y' })).toContain('not valid UTF-8')
  })

  test('where the file is missing, and no folder is made for it', async () => {
    await using folder = await TestFolder.make({ abc: '' })
    for (const path of ['abd', 'sub/a']) {
      const { content, isError } = await edit(folder, { path, oldText: 'x', newText: 'y' })
      expect({ content, isError }).toEqual({
        content: expect.stringContaining(`${path} does not exist.`),
        isError: true,
      })
    }
    expect(await readdir(folder.path)).toEqual(['abc'])
  })

  test('where the file is too large', async () => {
    await using folder = await TestFolder.make({ a: 'x' })
    await truncate(folder.at('a'), 33 * 1024 * 1024)
    expect((await edit(folder, { oldText: 'x', newText: 'y' })).content).toContain('too large to edit')
  })

  test('if another program changed the file in the meantime', async () => {
    await using folder = await TestFolder.make({ a: 'x\n' })
    const context = testContext({
      cwd: folder.path,
      putBlob: async () => {
        await folder.write('a', 'x, and more\n')
        return { sha256: '', size: 0 }
      },
    })
    expect(await callTool(editTool, { path: 'a', oldText: 'x', newText: 'y' }, context)).toEqual({
      content: `${folder.at('a')} was changed by another program just now, so nothing was written. Read it again.`,
      isError: true,
    })
    expect(await folder.read('a')).toBe('x, and more\n')
    expect(await readdir(folder.path)).toEqual(['a'])
  })
})

test('edits and writes of one file wait for each other, whatever the path that they take', async () => {
  await using folder = await TestFolder.make({ 'real/a': '0\n' })
  await symlink('real', folder.at('link'))
  const context = testContext({ cwd: folder.path })
  const calls = Array.from({ length: 40 }, (_, index) =>
    callTool(
      editTool,
      { path: index % 2 ? 'real/a' : 'link/a', oldText: `${index}\n`, newText: `${index}\n${index + 1}\n` },
      context,
    ),
  )
  const results = await Promise.all(calls)
  expect(results.filter(({ isError }) => isError)).toEqual([])
  expect(await folder.read('real/a')).toBe(`${Array.from({ length: 41 }, (_, index) => index).join('\n')}\n`)
  await Promise.all([
    callTool(writeTool, { path: 'real/a', content: 'first\n' }, context),
    callTool(editTool, { path: 'link/a', oldText: 'first', newText: 'second' }, context),
  ])
  expect(await folder.read('real/a')).toBe('second\n')
})

test('an edit is judged as reading and writing', async () => {
  await using folder = await TestFolder.make({ a: '' })
  expect(accessOf(editTool, { path: 'a', oldText: 'x', newText: '' }, { cwd: folder.path })).toEqual([
    { type: 'read', path: folder.at('a') },
    { type: 'write', path: folder.at('a') },
  ])
})
