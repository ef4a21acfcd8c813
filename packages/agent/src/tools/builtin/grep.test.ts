import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { grepTool } from './grep.ts'

async function grep(folder: TestFolder, input: Record<string, unknown>) {
  return callTool(grepTool, input, testContext({ cwd: folder.path }))
}

describe('matches', () => {
  test('are listed by file, sorted by path, with their line numbers', async () => {
    await using folder = await TestFolder.make({
      'src/b.ts': 'const hello = 1\n\nhello()\n',
      'src/a.ts': 'say hello\n',
      'z.md': 'nothing\n',
    })
    expect(await grep(folder, { pattern: 'hel+o' })).toEqual({
      content: 'src/a.ts\n1: say hello\n\nsrc/b.ts\n1: const hello = 1\n3: hello()',
    })
  })

  test('are shown with the lines around them', async () => {
    await using folder = await TestFolder.make({ a: '1\n2\nx\n4\n5\n6\n7\n8\nx\n10\n' })
    expect((await grep(folder, { pattern: 'x', context: 1 })).content).toBe(
      'a\n2- 2\n3: x\n4- 4\n--\n8- 8\n9: x\n10- 10',
    )
  })

  test('ignore case, or match plain text, on request', async () => {
    await using folder = await TestFolder.make({ a: 'Hello.*\nhello\n' })
    expect((await grep(folder, { pattern: 'HELLO', ignoreCase: true })).content).toBe('a\n1: Hello.*\n2: hello')
    expect((await grep(folder, { pattern: '.*', literal: true })).content).toBe('a\n1: Hello.*')
  })

  test('stop at the limit, with a note', async () => {
    await using folder = await TestFolder.make({ a: 'x\n'.repeat(500), b: 'x\n' })
    const { content } = await grep(folder, { pattern: 'x', limit: 2 })
    expect(content).toBe('a\n1: x\n2: x\n\n[Stopped after 2 matches. Narrow the search, or raise the limit.]')
    expect((await grep(folder, { pattern: 'x' })).content).toContain('Stopped after 100 matches')
    expect((await grep(folder, { pattern: 'x', path: 'b', limit: 1 })).content).toBe('b\n1: x')
  })

  test('on long lines are truncated, and a long result loses its middle', async () => {
    await using folder = await TestFolder.make({
      a: `x${'y'.repeat(100_000)}\n`,
      b: `${'z'.repeat(400)}\n`.repeat(900),
    })
    const long = (await grep(folder, { pattern: 'x' })).content as string
    expect(long.length).toBeLessThan(700)
    expect(long).toContain('omitted end of long line')
    const context = testContext({ cwd: folder.path })
    const { content } = await callTool(grepTool, { pattern: 'z', limit: 1000 }, context)
    expect(content).toMatch(/left out here\. The whole output is kept as blob [0-9a-f]{64}/)
    expect(
      Buffer.from([...context.blobs.values()][0]!)
        .toString()
        .split('\n').length,
    ).toBe(901)
  })

  test('in Windows files have no carriage return, and UTF-16 is read', async () => {
    await using folder = await TestFolder.make({ a: 'hello\r\n', b: Buffer.from('\ufeffhello ü\n', 'utf16le') })
    expect((await grep(folder, { pattern: 'hello' })).content).toBe('a\n1: hello\n\nb\n1: hello ü')
  })

  test('in a file with a line break in its name cannot be mistaken for another file', async () => {
    await using folder = await TestFolder.make({ 'a\n99: b': 'hello\n' })
    expect((await grep(folder, { pattern: 'hello' })).content).toBe(String.raw`"a\n99: b"` + '\n1: hello')
  })

  test('that do not exist are not an error', async () => {
    await using folder = await TestFolder.make({ a: 'x' })
    expect(await grep(folder, { pattern: 'y' })).toEqual({ content: 'No matches.' })
  })
})

describe('files', () => {
  const files = {
    '.gitignore': 'ignored/\n*.log\n!keep.log\n',
    '.git/config': 'hello\n',
    '.github/ci.yml': 'hello\n',
    'ignored/a.ts': 'hello\n',
    'a.log': 'hello\n',
    'keep.log': 'hello\n',
    'src/a.ts': 'hello\n',
    'src/deep/b.tsx': 'hello\n',
    'test/a.ts': 'hello\n',
  }
  const found = async (folder: TestFolder, input: Record<string, unknown>) =>
    ((await grep(folder, { pattern: 'hello', ...input })).content as string)
      .split('\n')
      .filter((line) => line !== '' && line !== '1: hello')

  test('that are ignored and the repository itself are left out; hidden ones are searched', async () => {
    await using folder = await TestFolder.make(files)
    expect(await found(folder, {})).toEqual(['.github/ci.yml', 'keep.log', 'src/a.ts', 'src/deep/b.tsx', 'test/a.ts'])
  })

  test.each([
    ['*.ts', ['src/a.ts', 'test/a.ts']],
    ['*.{ts,tsx}', ['src/a.ts', 'src/deep/b.tsx', 'test/a.ts']],
    ['src/**', ['src/a.ts', 'src/deep/b.tsx']],
    ['**/*.yml', ['.github/ci.yml']],
    ['*.log', ['keep.log']],
    ['!*.ts', ['.github/ci.yml', 'keep.log', 'src/deep/b.tsx']],
    ['*', ['.github/ci.yml', 'keep.log', 'src/a.ts', 'src/deep/b.tsx', 'test/a.ts']],
  ])('are narrowed by %j, which does not override ignore rules', async (glob, expected) => {
    await using folder = await TestFolder.make(files)
    expect(await found(folder, { glob })).toEqual(expected)
  })

  test('are searched at the path, even if it is ignored', async () => {
    await using folder = await TestFolder.make(files)
    expect(await found(folder, { path: 'src', glob: 'deep/*' })).toEqual(['src/deep/b.tsx'])
    expect(await found(folder, { path: 'ignored/a.ts' })).toEqual(['ignored/a.ts'])
    expect(await found(folder, { path: '.git' })).toEqual(['.git/config'])
  })

  test('outside of the working folder are shown with their absolute path', async () => {
    await using folder = await TestFolder.make(files)
    const context = testContext({ cwd: folder.at('src') })
    expect((await callTool(grepTool, { pattern: 'hello', path: '../test' }, context)).content).toBe(
      `${folder.at('test/a.ts')}\n1: hello`,
    )
  })

  test('behind links are not searched', async () => {
    await using folder = await TestFolder.make({ 'in/a': 'hello\n', 'out/secret': 'hello\n' })
    await symlink(folder.at('out'), folder.at('in/folder'))
    await symlink(folder.at('out/secret'), folder.at('in/file'))
    expect(await found(folder, { path: 'in' })).toEqual(['in/a'])
  })

  test('that are binary are skipped, or reported as binary', async () => {
    await using folder = await TestFolder.make({
      early: Buffer.from('hello\0\n'),
      late: Buffer.from(`hello\n${'x\n'.repeat(200_000)}\0\nhello\n`),
      zz: 'hello\n',
    })
    const notice = '[This file is binary; it was not searched to its end.]'
    expect((await grep(folder, { pattern: 'hello' })).content).toBe(`late\n1: hello\n${notice}\n\nzz\n1: hello`)
    expect((await grep(folder, { pattern: 'hello', path: 'early' })).content).toBe(`early\n${notice}`)
  })
})

describe('a search', () => {
  test.each(['-x', '--pre=touch', '--files', '-f/etc/passwd', '--', '-'])(
    'for %j is not an option',
    async (pattern) => {
      await using folder = await TestFolder.make({ a: `see ${pattern} here\n` })
      expect((await grep(folder, { pattern })).content).toBe(`a\n1: see ${pattern} here`)
    },
  )

  test('with a path, name or glob that looks like an option does not set it', async () => {
    await using folder = await TestFolder.make({ '--pre=touch': 'x\n', '-r/--files': 'x\n' })
    expect((await grep(folder, { pattern: 'x', path: '--pre=touch' })).content).toBe('--pre=touch\n1: x')
    expect((await grep(folder, { pattern: 'x', path: '-r' })).content).toBe('-r/--files\n1: x')
    expect((await grep(folder, { pattern: 'x', glob: '--pre=touch' })).content).toBe('--pre=touch\n1: x')
  })

  test('runs no preprocessor of a configuration, and gets none of our environment', async () => {
    await using folder = await TestFolder.make({ a: 'hello\n', 'bin/pre': '#!/bin/sh\ntouch ran\n' })
    execFileSync('chmod', ['+x', folder.at('bin/pre')])
    await folder.write('config', `--pre=${folder.at('bin/pre')}\n`)
    process.env['RIPGREP_CONFIG_PATH'] = folder.at('config')
    onTestFinished(() => void delete process.env['RIPGREP_CONFIG_PATH'])
    expect((await grep(folder, { pattern: 'hello', glob: '/a' })).content).toBe('a\n1: hello')
    await expect(folder.read('ran')).rejects.toThrow('ENOENT')
  })

  test('with an invalid expression is an error with the reason', async () => {
    await using folder = await TestFolder.make({ a: '' })
    const { content, isError } = await grep(folder, { pattern: '(' })
    expect(isError).toBe(true)
    expect(content).toContain('unclosed group')
  })

  test('of a missing path is an error', async () => {
    await using folder = await TestFolder.make({ source: '' })
    expect(await grep(folder, { pattern: 'x', path: 'sources' })).toEqual({
      content: 'sources does not exist. Did you mean source?',
      isError: true,
    })
  })

  test('with a NUL character is invalid', async () => {
    await using folder = await TestFolder.make()
    expect(await grep(folder, { pattern: 'a\0b' })).toMatchObject({ isError: true })
    expect(await grep(folder, { pattern: 'a', glob: '\0' })).toMatchObject({ isError: true })
  })

  test('is judged as reading its start path, and in a folder everything below', async () => {
    await using folder = await TestFolder.make({ 'real/a': '' })
    await symlink('real', folder.at('link'))
    const judged = (path?: string) => accessOf(grepTool, { pattern: 'x', ...(path && { path }) }, { cwd: folder.path })
    expect(judged('link')).toEqual([{ type: 'read', path: folder.at('real'), isRecursive: true }])
    expect(judged()).toEqual([{ type: 'read', path: folder.path, isRecursive: true }])
    expect(judged('link/a')).toEqual([{ type: 'read', path: folder.at('real/a') }])
    expect(judged('real/a/b')).toEqual([{ type: 'read', path: folder.at('real/a/b') }])
    expect(judged('nowhere')).toEqual([{ type: 'read', path: folder.at('nowhere') }])
  })
})
