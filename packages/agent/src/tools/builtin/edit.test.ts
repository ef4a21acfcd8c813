import { createHash } from 'node:crypto'
import { chmod, readdir, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { editTool, editText, type TextEdit } from './edit.ts'
import { writeTool } from './write.ts'
import fc from 'fast-check'

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

test('every occurrence is changed with replaceAll', async () => {
  await using folder = await TestFolder.make({ a: 'x x\nx\n' })
  expect((await edit(folder, { oldText: 'x', newText: 'yy', replaceAll: true })).content).toMatch(
    /^Edited a: 3 replacements\./,
  )
  expect(await folder.read('a')).toBe('yy yy\nyy\n')
})

test('byte order mark, Windows line endings, encoding and mode are kept', async () => {
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

  test('if the text is not in the file', async () => {
    expect(await refused('const total = 1\n', { oldText: 'const totals = 2', newText: '' })).toBe(
      'a was not changed. oldText is not in the file. The most similar line is line 1: "const total = 1". ' +
        'Read the file again and copy the text exactly.',
    )
  })

  test('if the text occurs more than once', async () => {
    expect(await refused('x\ny\nx\n', { oldText: 'x', newText: 'z' })).toBe(
      'a was not changed. oldText occurs 2 times, at lines 1, 3. ' +
        'Include more of the surrounding text, or set replaceAll to change all of them.',
    )
  })

  test('if both texts are the same, or the old one is empty', async () => {
    expect(await refused('x', { oldText: 'x', newText: 'x' })).toContain('nothing would change')
    expect(await refused('x', { oldText: '', newText: 'x' })).toContain('To create a file use write.')
  })

  test('if the file is not text', async () => {
    expect(await refused(Buffer.from([0, 1]), { oldText: 'x', newText: 'y' })).toContain('not valid UTF-8')
  })

  test('if the file is missing, and no folder is created for it', async () => {
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

  test('if the file is too large', async () => {
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

test('edits and writes of one file are serialized, by any path to it', async () => {
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

function edited(text: string, oldText: string, newText: string, options: Partial<TextEdit> = {}) {
  const result = editText(text, { oldText, newText, replaceAll: false, ...options })
  return result.type === 'edited' ? result.text : result.reason
}

describe('line endings', () => {
  test('text with line feeds matches a file with Windows line endings, which stay', () => {
    expect(edited('a\r\nb\r\nc\r\n', 'a\nb\n', 'a\nx\ny\nb\n')).toBe('a\r\nx\r\ny\r\nb\r\nc\r\n')
  })

  test('unchanged lines keep their own endings', () => {
    expect(edited('a\r\nb\nc\r\nd\n', 'a\nb\nc\nd', 'a\nb\nX\nc\nd')).toBe('a\r\nb\nX\r\nc\r\nd\n')
  })

  test('new lines after the last line take the ending of the line before', () => {
    expect(edited('a\r\nb', 'b', 'b\nc\nd')).toBe('a\r\nb\r\nc\r\nd')
    expect(edited('a\nb', 'b', 'b\nc')).toBe('a\nb\nc')
    expect(edited('b', 'b', 'b\nc')).toBe('b\nc')
  })

  test('text with carriage returns is literal', () => {
    expect(edited('a\r\nb\r\n', 'a\r\nb', 'a\nb')).toBe('a\nb\r\n')
    expect(edited('a\nb\n', 'a', 'a\r\nx')).toBe('a\r\nx\nb\n')
    expect(edited('a\nb\n', 'a\r\nb', 'c')).toContain('other line endings')
  })

  test('a lone carriage return is an ordinary character', () => {
    expect(edited('a\rb\rc', 'b', 'x')).toBe('a\rx\rc')
  })

  test('lines are joined and deleted with their endings', () => {
    expect(edited('a\r\nb\r\nc', 'a\nb', 'ab')).toBe('ab\r\nc')
    expect(edited('a\r\nb\r\nc', 'b\n', '')).toBe('a\r\nc')
  })
})

test('the new text is not searched again, and dollars have no meaning', () => {
  expect(edited('a b', 'a', '$& $1 $$')).toBe('$& $1 $$ b')
})

test('overlapping occurrences are counted from the left', () => {
  expect(editText('aaa', { oldText: 'aa', newText: 'b', replaceAll: true })).toEqual({
    type: 'edited',
    text: 'ba',
    count: 1,
  })
})

test('on random files an edit does the same as without carriage returns, and changes nothing else', () => {
  const line = fc.tuple(fc.constantFrom('a', 'b', 'ab', ''), fc.constantFrom('\n', '\r\n'))
  const file = fc.array(line, { maxLength: 12 }).map((lines) => lines.flat().join(''))
  const piece = fc.array(fc.constantFrom('a', 'b', '\n'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(file, piece, piece, (text, oldText, newText) => {
      const plain = text.replaceAll('\r\n', '\n')
      fc.pre(plain.includes(oldText))
      const result = editText(text, { oldText, newText, replaceAll: true })
      if (result.type !== 'edited') throw new Error(result.reason)
      expect(result.text.replaceAll('\r\n', '\n')).toBe(plain.replaceAll(oldText, () => newText))
      const before = plain.indexOf(oldText)
      const crBefore = [...text.matchAll(/\r\n/g)].filter(({ index }, count) => index - count < before).length
      expect(result.text.slice(0, before + crBefore)).toBe(text.slice(0, before + crBefore))
      expect(result.text).not.toMatch(/\r(?!\n)/)
    }),
  )
})

describe('a missing text is explained', () => {
  test('by whitespace', () => {
    expect(edited('if (x) {\n\treturn 1\n}\n', 'if (x) {\n  return 1\n}', '')).toBe(
      'oldText is not in the file. It occurs from line 1 on with different whitespace. ' +
        String.raw`The file has "\treturn 1" where oldText has "  return 1".`,
    )
    expect(edited('a\n  foo( bar )\n', 'foo(bar)\n', '')).toContain('from line 2 on with different whitespace')
  })

  test('by line numbers', () => {
    expect(edited('one\ntwo\n', '1\tone\n2\ttwo', '')).toContain('leave out the number and the tab')
  })

  test('by the most similar line', () => {
    expect(edited('alpha\nfunction total(items) {\nomega\n', 'function totals(item) {', '')).toContain(
      'The most similar line is line 2: "function total(items) {".',
    )
  })

  test('without a hint if nothing is similar', () => {
    expect(edited('alpha\n', 'completely different', '')).toBe(
      'oldText is not in the file. Read the file again and copy the text exactly.',
    )
  })

  test('quickly, even in a large file', () => {
    const text = Array.from({ length: 200_000 }, (_, index) => `some line of text number ${index} (${index % 7})`).join(
      '\n',
    )
    expect(edited(text, 'some line of texts number x', '')).toContain('The most similar line')
  })
})

test('of many occurrences, the first ten are shown', () => {
  expect(edited('x\n'.repeat(20), 'x', 'y')).toContain('20 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more.')
})
