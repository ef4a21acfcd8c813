import { createHash } from 'node:crypto'
import { chmod, link, lstat, mkdir, readdir, readlink, stat, symlink, truncate } from 'node:fs/promises'
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { writeTool } from './write.ts'

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

async function write(folder: TestFolder, path: string, content: string) {
  const context = testContext({ cwd: folder.path })
  return { ...(await callTool(writeTool, { path, content }, context)), context }
}

test('a new file is created with its folders, stored and recorded', async () => {
  await using folder = await TestFolder.make()
  const { content, isError, context } = await write(folder, 'a/b/c.txt', 'one\ntwo\n')
  expect({ content, isError }).toEqual({ content: 'Created a/b/c.txt (2 lines, 8 bytes).', isError: undefined })
  expect(await folder.read('a/b/c.txt')).toBe('one\ntwo\n')
  const sha256After = sha256('one\ntwo\n')
  expect(context.records).toEqual([
    {
      type: 'file_write',
      fileWrite: { path: folder.at('a/b/c.txt'), size: 8, sha256After, runId: 'run-1', callId: 'call-1' },
    },
  ])
  expect(context.steps).toEqual([`blob ${sha256After}`, 'record file_write'])
})

test('an existing file is replaced; both contents are kept and the result shows the diff', async () => {
  await using folder = await TestFolder.make({ 'a.txt': 'one\ntwo\nthree\n' })
  const { content, context } = await write(folder, 'a.txt', 'one\n2\nthree\n')
  expect(content).toBe(
    [
      'Wrote a.txt (3 lines, 12 bytes).',
      '',
      '--- a.txt',
      '+++ a.txt',
      '@@ -1,3 +1,3 @@',
      ' one',
      '-two',
      '+2',
      ' three',
    ].join('\n'),
  )
  const [before, after] = [sha256('one\ntwo\nthree\n'), sha256('one\n2\nthree\n')]
  expect(context.steps).toEqual([`blob ${before}`, `blob ${after}`, 'record file_write'])
  expect(context.records).toMatchObject([{ fileWrite: { size: 12, sha256Before: before, sha256After: after } }])
  expect(await readdir(folder.path)).toEqual(['a.txt'])
})

test('contents of more than 1 MiB are identified but not kept', async () => {
  await using folder = await TestFolder.make({ a: 'x'.repeat(1024 * 1024 + 1) })
  const { content, context } = await write(folder, 'a', 'y'.repeat(1024 * 1024 + 1))
  expect(content).toContain('(The file is too large for a diff.)')
  expect(context.blobs.size).toBe(0)
  expect(context.records).toMatchObject([
    {
      fileWrite: {
        sha256Before: sha256('x'.repeat(1024 * 1024 + 1)),
        sha256After: sha256('y'.repeat(1024 * 1024 + 1)),
      },
    },
  ])
})

test('a file too large to hold in memory is identified by its sha256', async () => {
  await using folder = await TestFolder.make({ a: '' })
  await truncate(folder.at('a'), 33 * 1024 * 1024)
  const { context } = await write(folder, 'a', 'small\n')
  expect(context.records).toMatchObject([{ fileWrite: { sha256Before: sha256(Buffer.alloc(33 * 1024 * 1024)) } }])
  expect(await folder.read('a')).toBe('small\n')
})

test('a long diff loses its middle, and all of it is kept', async () => {
  const lines = (word: string) =>
    Array.from({ length: 480 }, (_, index) => `${word} ${index} ${'x'.repeat(60)}\n`).join('')
  await using folder = await TestFolder.make({ a: lines('old') })
  const { content, context } = await write(folder, 'a', lines('new'))
  const blob = /kept as blob ([0-9a-f]{64})/.exec(content as string)?.[1] ?? ''
  const whole = Buffer.from(context.blobs.get(blob)!).toString()
  expect(whole).toContain('-old 479 ')
  expect(whole).toContain('+new 0 ')
  expect((content as string).length).toBeLessThan(34_000)
})

test('a file that changed almost completely has no diff', async () => {
  const lines = (word: string) => Array.from({ length: 1500 }, (_, index) => `${word} ${index}\n`).join('')
  await using folder = await TestFolder.make({ a: lines('old') })
  expect((await write(folder, 'a', lines('new'))).content).toContain('(Too much has changed for a diff.)')
})

test('unchanged content is reported', async () => {
  await using folder = await TestFolder.make({ a: 'x\n' })
  expect((await write(folder, 'a', 'x\n')).content).toContain('(The text is the same as before.)')
})

test('a replaced binary file has no diff', async () => {
  await using folder = await TestFolder.make({ a: Buffer.from([0, 1, 2]) })
  expect((await write(folder, 'a', 'text\n')).content).toBe(
    'Wrote a (1 line, 5 bytes).\n\n(No diff: the file is not text.)',
  )
})

describe('the file system', () => {
  test('the mode is kept, without setuid and setgid', async () => {
    await using folder = await TestFolder.make({ run: 'old', own: 'old', private: 'old' })
    await chmod(folder.at('run'), 0o755)
    await chmod(folder.at('own'), 0o4755)
    await chmod(folder.at('private'), 0o600)
    for (const name of ['run', 'own', 'private']) await write(folder, name, 'new')
    const modes = await Promise.all(
      ['run', 'own', 'private'].map(async (name) => (await stat(folder.at(name))).mode & 0o7777),
    )
    expect(modes).toEqual([0o755, 0o755, 0o600])
  })

  test('a new file gets the mode of the umask', async () => {
    await using folder = await TestFolder.make()
    await write(folder, 'a', 'new')
    expect((await stat(folder.at('a'))).mode & 0o777).toBe(0o666 & ~process.umask())
  })

  test.skipIf(process.getuid?.() !== 0)('root keeps the owner of a file', async () => {
    await using folder = await TestFolder.make({ a: 'old' })
    execFileSync('chown', ['12345:23456', folder.at('a')])
    await write(folder, 'a', 'new')
    const { uid, gid } = await stat(folder.at('a'))
    expect({ uid, gid }).toEqual({ uid: 12345, gid: 23456 })
  })

  test('through a link its target is written, and the link stays', async () => {
    await using folder = await TestFolder.make({ 'real/a': 'old\n' })
    await symlink('real/a', folder.at('link'))
    const { context } = await write(folder, 'link', 'new\n')
    expect(await readlink(folder.at('link'))).toBe('real/a')
    expect(await folder.read('real/a')).toBe('new\n')
    expect(context.records).toMatchObject([{ fileWrite: { path: folder.at('real/a') } }])
  })

  test('through a dangling link its judged target is created', async () => {
    await using folder = await TestFolder.make()
    await symlink('sub/new', folder.at('link'))
    expect(accessOf(writeTool, { path: 'link', content: '' }, { cwd: folder.path })).toEqual([
      { type: 'write', path: folder.at('sub/new') },
    ])
    await write(folder, 'link', 'x')
    expect((await lstat(folder.at('link'))).isSymbolicLink()).toBe(true)
    expect(await folder.read('sub/new')).toBe('x')
  })

  test('another hard link of the file keeps the old content', async () => {
    await using folder = await TestFolder.make({ outside: 'old' })
    await link(folder.at('outside'), folder.at('inside'))
    await write(folder, 'inside', 'new')
    expect(await folder.read('outside')).toBe('old')
  })

  test('a folder, a pipe and a device are not replaced', async () => {
    await using folder = await TestFolder.make()
    await mkdir(folder.at('sub'))
    execFileSync('mkfifo', [folder.at('pipe')])
    for (const path of ['sub', 'pipe', '/dev/null']) {
      const { isError, context } = await write(folder, path, 'x')
      expect({ isError, records: context.records }).toEqual({ isError: true, records: [] })
    }
    expect((await stat('/dev/null')).isCharacterDevice()).toBe(true)
  })

  test('a file at the path of a folder is an error', async () => {
    await using folder = await TestFolder.make({ a: '' })
    expect(await write(folder, 'a/b', 'x')).toMatchObject({ isError: true })
  })

  test('nothing is left behind when a write fails', async () => {
    await using folder = await TestFolder.make({ a: 'old' })
    const context = testContext({ cwd: folder.path, putBlob: () => Promise.reject(new Error('storage failed')) })
    await expect(callTool(writeTool, { path: 'a', content: 'new' }, context)).rejects.toThrow('storage failed')
    expect(await readdir(folder.path)).toEqual(['a'])
    expect(await folder.read('a')).toBe('old')
  })

  test('an abort before the file is replaced leaves everything unchanged', async () => {
    await using folder = await TestFolder.make({ a: 'old' })
    const controller = new AbortController()
    const context = testContext({
      cwd: folder.path,
      signal: controller.signal,
      putBlob: async () => {
        controller.abort()
        return { sha256: '', size: 0 }
      },
    })
    await expect(callTool(writeTool, { path: 'a', content: 'new' }, context)).rejects.toMatchObject({
      name: 'AbortError',
    })
    expect(await readdir(folder.path)).toEqual(['a'])
    expect(await folder.read('a')).toBe('old')
  })
})

test('overwriting is also judged as reading, creating is not', async () => {
  await using folder = await TestFolder.make({ a: '' })
  expect(accessOf(writeTool, { path: 'a', content: '' }, { cwd: folder.path })).toEqual([
    { type: 'read', path: folder.at('a') },
    { type: 'write', path: folder.at('a') },
  ])
  expect(accessOf(writeTool, { path: 'b', content: '' }, { cwd: folder.path })).toEqual([
    { type: 'write', path: folder.at('b') },
  ])
})

test('a file that was created after the call was judged is not shown', async () => {
  await using folder = await TestFolder.make()
  const context = testContext({ cwd: folder.path })
  const checked = writeTool.check({ path: 'a', content: 'new' }, context)
  if (typeof checked === 'string') throw new Error(checked)
  await folder.write('a', 'secret')
  expect((await checked.run(context)).content).toBe('Wrote a (1 line, 3 bytes).')
})
