import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, symlink, truncate } from 'node:fs/promises'
import { homedir } from 'node:os'
import { relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { accessOf, callTool, testContext } from '../../testing/tool-context.ts'
import { readTool } from './read.ts'

async function read(folder: TestFolder, input: Record<string, unknown>) {
  const context = testContext({ cwd: folder.path })
  return { ...(await callTool(readTool, input, context)), context }
}

describe('text', () => {
  test('is shown with line numbers, and the read is recorded', async () => {
    await using folder = await TestFolder.make({ 'a.txt': 'one\n\nthree\n' })
    const { content, context } = await read(folder, { path: 'a.txt' })
    expect(content).toBe('1\tone\n2\t\n3\tthree')
    expect(context.records).toEqual([
      { type: 'file_read', fileRead: { path: folder.at('a.txt'), size: 11, runId: 'run-1', callId: 'call-1' } },
    ])
  })

  test('without a final line break has the same lines', async () => {
    await using folder = await TestFolder.make({ a: 'one\ntwo' })
    expect((await read(folder, { path: 'a' })).content).toBe('1\tone\n2\ttwo')
  })

  test('of an empty file is reported as empty', async () => {
    await using folder = await TestFolder.make({ a: '' })
    const { content, isError } = await read(folder, { path: 'a' })
    expect({ content, isError }).toEqual({ content: 'a is empty.', isError: undefined })
  })

  test('is shown from an offset to a limit, with the offset to continue at', async () => {
    await using folder = await TestFolder.make({ a: 'one\ntwo\nthree\nfour\n' })
    expect((await read(folder, { path: 'a', offset: 2, limit: 2 })).content).toBe(
      '2\ttwo\n3\tthree\n[Lines 2 to 3 of a file of 19 bytes. Continue with offset 4.]',
    )
    expect((await read(folder, { path: 'a', offset: 3, limit: 2 })).content).toBe('3\tthree\n4\tfour')
  })

  test('after its end is an error with its length', async () => {
    await using folder = await TestFolder.make({ a: 'one\ntwo\n' })
    expect(await read(folder, { path: 'a', offset: 3 })).toMatchObject({
      content: 'a has only 2 lines, so there is no line 3.',
      isError: true,
    })
  })

  test('stops after 2000 lines and after 48 KiB, and continuing misses nothing', async () => {
    const lines = Array.from({ length: 5000 }, (_, index) => `line ${index} ${'x'.repeat(index % 100)}`)
    await using folder = await TestFolder.make({ a: `${lines.join('\n')}\n` })
    const seen: string[] = []
    let offset: number | undefined = 1
    while (offset !== undefined) {
      const content = (await read(folder, { path: 'a', offset })).content as string
      expect(content.length).toBeLessThan(64 * 1024)
      const shown = content.split('\n')
      const more = /Continue with offset (\d+)/.exec(shown.at(-1) ?? '')
      if (more) shown.pop()
      expect(shown.length).toBeLessThanOrEqual(2000)
      seen.push(...shown.map((line) => line.slice(line.indexOf('\t') + 1)))
      offset = more ? Number(more[1]) : undefined
    }
    expect(seen).toEqual(lines)
  })

  test('with long lines has them truncated, even if one is longer than a page', async () => {
    await using folder = await TestFolder.make({ a: `${'x'.repeat(200_000)}\nshort\n${'y'.repeat(2000)}\r\n` })
    expect((await read(folder, { path: 'a' })).content).toBe(
      `1\t${'x'.repeat(2000)} [… truncated: this line has 200000 characters]\n2\tshort\n3\t${'y'.repeat(2000)}`,
    )
  })

  test('of a gigabyte file is read without holding it in memory', async () => {
    await using folder = await TestFolder.make({ a: 'first\nsecond\n' })
    await truncate(folder.at('a'), 2 ** 30)
    const before = process.memoryUsage().rss
    const { content } = await read(folder, { path: 'a', limit: 2 })
    // The hole reads as NUL bytes, which make it binary; with text before it, it is an ordinary page.
    expect(content).toContain('binary')
    await folder.write('a', `first\n${'x'.repeat(70_000)}\nlast\n`)
    await truncate(folder.at('a'), 2 ** 30)
    expect((await read(folder, { path: 'a', limit: 1 })).content).toBe(
      `1\tfirst\n[Lines 1 to 1 of a file of ${2 ** 30} bytes. Continue with offset 2.]`,
    )
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 2 ** 20)
  })

  test('with a byte order mark or Windows line endings hides both', async () => {
    await using folder = await TestFolder.make({ a: '\ufeffone\r\ntwo\r\n' })
    expect((await read(folder, { path: 'a' })).content).toBe('1\tone\n2\ttwo')
  })

  test.each(['utf16le', 'utf16be'])('in %s is decoded', async (encoding) => {
    const bytes = Buffer.from('\ufeffgrün\n🎈\n', 'utf16le')
    await using folder = await TestFolder.make({ a: encoding === 'utf16le' ? bytes : bytes.swap16() })
    expect((await read(folder, { path: 'a' })).content).toBe('1\tgrün\n2\t🎈')
  })

  test('that is not valid UTF-8 is shown with a note', async () => {
    await using folder = await TestFolder.make({ a: Buffer.from('gr\xfcn\n', 'latin1') })
    expect((await read(folder, { path: 'a' })).content).toBe(
      '1\tgr\ufffdn\n[Each \ufffd may stand for bytes that are not valid UTF-8.]',
    )
  })

  test('is decoded correctly if characters span read chunks', async () => {
    const line = '€'.repeat(1500)
    await using folder = await TestFolder.make({ a: `x${`${line}\n`.repeat(10)}` })
    const content = (await read(folder, { path: 'a' })).content as string
    expect(content).toBe(
      [`1\tx${line}`, ...Array.from({ length: 9 }, (_, index) => `${index + 2}\t${line}`)].join('\n'),
    )
  })

  test('is not read further after an abort', async () => {
    await using folder = await TestFolder.make({ a: 'one\n' })
    const context = testContext({ cwd: folder.path, signal: AbortSignal.abort() })
    await expect(callTool(readTool, { path: 'a' }, context)).rejects.toMatchObject({ name: 'AbortError' })
    expect(context.records).toEqual([])
  })
})

describe('an image', () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  )

  test.each([
    ['image/png', png],
    ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16])],
    ['image/gif', Buffer.from('GIF89a\x01\x00\x01\x00\x00\x00\x00;', 'latin1')],
    ['image/webp', Buffer.from('RIFF\x1a\x00\x00\x00WEBPVP8L\x00', 'latin1')],
  ])('of type %s is stored as a blob and returned as an image, whatever its name', async (mediaType, bytes) => {
    await using folder = await TestFolder.make({ 'picture.txt': bytes })
    const { content, context } = await read(folder, { path: 'picture.txt' })
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    expect(content).toEqual([
      { type: 'text', text: { content: `picture.txt: ${mediaType}, ${bytes.length} bytes` } },
      { type: 'image', image: { source: { type: 'blob', mediaType, sha256, size: bytes.length } } },
    ])
    expect(Buffer.from(context.blobs.get(sha256)!)).toEqual(bytes)
    expect(context.steps).toEqual([`blob ${sha256}`, 'record file_read'])
  })

  test('is described in words if the model does not support images, and is not stored', async () => {
    await using folder = await TestFolder.make({ 'a.png': png })
    const context = testContext({ cwd: folder.path, model: { provider: 'p', id: 'blind-1', hasImages: false } })
    const { content, isError } = await callTool(readTool, { path: 'a.png' }, context)
    expect([content, isError]).toEqual([
      `a.png is an image (image/png) of ${png.length} bytes. It is not shown: blind-1 does not support images.`,
      undefined,
    ])
    expect(context.steps).toEqual(['record file_read'])
  })

  test('of more than 5 MB is rejected', async () => {
    await using folder = await TestFolder.make({ 'a.png': png })
    await truncate(folder.at('a.png'), 5 * 1024 * 1024 + 1)
    const { content, isError, context } = await read(folder, { path: 'a.png' })
    expect(isError).toBe(true)
    expect(content).toContain('5242881 bytes; at most 5242880')
    expect(context.steps).toEqual([])
  })
})

describe('a path that cannot be shown', () => {
  test.each([
    ['%PDF-1.7\n', 'a PDF document'],
    ['PK\x03\x04....', 'a ZIP archive'],
    ['\x7fELF\x02', 'an ELF program'],
    ['SQLite format 3\0', 'an SQLite database'],
    ['text\0more', 'a binary file'],
  ])('is named: %j', async (start, name) => {
    await using folder = await TestFolder.make({ a: Buffer.from(start, 'latin1') })
    const { content, isError, context } = await read(folder, { path: 'a' })
    expect(isError).toBe(true)
    expect(content).toContain(`a is ${name}`)
    expect(context.records).toEqual([])
  })

  test('a folder is an error that names ls', async () => {
    await using folder = await TestFolder.make()
    await mkdir(folder.at('sub'))
    expect(await read(folder, { path: 'sub' })).toMatchObject({
      content: `${folder.at('sub')} is a folder. Use ls to see what is in it.`,
      isError: true,
    })
  })

  test.skipIf(process.platform === 'win32')('a pipe and a device are refused without waiting', async () => {
    await using folder = await TestFolder.make()
    execFileSync('mkfifo', [folder.at('pipe')])
    expect((await read(folder, { path: 'pipe' })).content).toBe(`${folder.at('pipe')} is a pipe, not a regular file.`)
    expect((await read(folder, { path: '/dev/zero' })).content).toBe('/dev/zero is a device, not a regular file.')
  })

  test('a missing file is reported with similar names', async () => {
    await using folder = await TestFolder.make({ 'src/settings.ts': '', 'src/Setting.test.ts': '', 'src/other.ts': '' })
    expect(await read(folder, { path: 'src/setings.ts' })).toMatchObject({
      content: 'src/setings.ts does not exist. Did you mean src/settings.ts or src/Setting.test.ts?',
      isError: true,
    })
    expect((await read(folder, { path: 'sorce/a.ts' })).content).toMatch(
      /^sorce\/a\.ts does not exist\. The folder \. has no sorce\./,
    )
    expect((await read(folder, { path: 'src/settings.ts/x' })).content).toContain('does not exist')
  })

  test('a cyclic link is an error', async () => {
    await using folder = await TestFolder.make()
    await symlink('b', folder.at('a'))
    await symlink('a', folder.at('b'))
    const { content, isError } = await read(folder, { path: 'a' })
    expect({ content, isError }).toEqual({
      content: expect.stringContaining('is a cyclic symbolic link'),
      isError: true,
    })
  })
})

describe('the path', () => {
  test('is judged by its real path', async () => {
    await using folder = await TestFolder.make({ 'inside/a': '', 'outside/secret': '' })
    await symlink(folder.at('outside'), folder.at('inside/link'))
    await symlink('link/secret', folder.at('inside/short'))
    const place = { cwd: folder.at('inside') }
    const judged = (path: string) => accessOf(readTool, { path }, place)
    const secret = [{ type: 'read', path: folder.at('outside/secret') }]
    expect(judged('link/secret')).toEqual(secret)
    expect(judged('short')).toEqual(secret)
    expect(judged('./x/../../outside/secret')).toEqual(secret)
    expect(judged('a')).toEqual([{ type: 'read', path: folder.at('inside/a') }])
    expect(judged('~/x')).toEqual([{ type: 'read', path: `${homedir()}/x` }])
  })

  test('may begin at home, be absolute or go up', async () => {
    await using folder = await TestFolder.make({ a: 'here\n', 'sub/b': '' })
    const context = testContext({ cwd: folder.at('sub') })
    for (const path of ['../a', folder.at('a'), `~/${relative(homedir(), folder.at('a'))}`]) {
      expect((await callTool(readTool, { path }, context)).content).toBe('1\there')
    }
  })

  test('with a NUL character, an empty one and a too long one are invalid', async () => {
    await using folder = await TestFolder.make({ a: '' })
    for (const path of ['a\0.png', '', 'x/'.repeat(3000)]) {
      const { content, isError } = await read(folder, { path })
      expect(isError).toBe(true)
      expect(content).toContain('The input of read is not valid.')
    }
  })

  test('with another target since it was judged is not read', async () => {
    await using folder = await TestFolder.make({ 'inside/a': 'mine\n', 'outside/a': 'secret\n' })
    const context = testContext({ cwd: folder.path })
    const checked = readTool.check({ path: 'inside/a' }, context)
    if (typeof checked === 'string') throw new Error(checked)
    execFileSync('mv', [folder.at('inside'), folder.at('gone')])
    await symlink(folder.at('outside'), folder.at('inside'))
    expect(await checked.run(context)).toEqual({
      content: `${folder.at('inside/a')} has a different target now than when this call was allowed. Nothing was done; check the path again.`,
      isError: true,
    })
    expect(context.records).toEqual([])
  })
})
