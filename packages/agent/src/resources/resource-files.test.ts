import { execFileSync } from 'node:child_process'
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { readLimited } from './resource-files.ts'

const limits = { maxBytes: 10, whenLonger: 'refuse' } as const

test('text has plain line feeds and no byte order mark', async () => {
  await using folder = await TestFolder.make({ a: '\uFEFFa\r\nb\n' })
  expect(await readLimited(folder.at('a'), limits)).toEqual({
    type: 'text',
    text: 'a\nb\n',
    isCut: false,
    realPath: folder.at('a'),
  })
})

test('a path that does not exist is missing, also below a file and behind a dangling link', async () => {
  await using folder = await TestFolder.make({ a: '' })
  await symlink('nowhere', folder.at('link'))
  for (const name of ['b', 'a/b', 'link']) {
    expect(await readLimited(folder.at(name), limits)).toEqual({ type: 'missing' })
  }
})

test('a file of exactly the limit is read, and one byte more is rejected or truncated', async () => {
  await using folder = await TestFolder.make({ fits: 'x'.repeat(10), long: 'x'.repeat(11) })
  expect(await readLimited(folder.at('fits'), limits)).toMatchObject({ type: 'text', isCut: false })
  expect(await readLimited(folder.at('long'), limits)).toEqual({
    type: 'refused',
    problem: `${folder.at('long')} was left out: it has more than 10 bytes.`,
  })
  const cut = await readLimited(folder.at('long'), { ...limits, whenLonger: 'cut' })
  expect(cut).toMatchObject({ type: 'text', text: 'x'.repeat(10), isCut: true })
})

test('a cut inside a character drops the character', async () => {
  await using folder = await TestFolder.make({ a: '123456789äöü' })
  const cut = await readLimited(folder.at('a'), { ...limits, whenLonger: 'cut' })
  expect(cut).toMatchObject({ type: 'text', text: '123456789', isCut: true })
})

test.each([
  ['a NUL', Buffer.from('a\0b')],
  ['a byte that is not UTF-8', Buffer.from([0x61, 0xff])],
  ['half a character at its end', Buffer.from([0x61, 0xc3])],
])('a file with %s is rejected', async (_, bytes) => {
  await using folder = await TestFolder.make({ a: bytes })
  expect(await readLimited(folder.at('a'), limits)).toMatchObject({
    problem: expect.stringContaining('not text in UTF-8'),
  })
})

test('folders, pipes and devices are rejected without waiting for them', async () => {
  await using folder = await TestFolder.make()
  execFileSync('mkfifo', [folder.at('pipe')])
  await mkdir(folder.at('folder'))
  for (const path of [folder.at('pipe'), folder.at('folder'), '/dev/zero']) {
    expect(await readLimited(path, limits)).toMatchObject({
      problem: `${path} was left out: it is not a regular file.`,
    })
  }
})

test('a link is followed, but not out of its allowed folder', async () => {
  await using folder = await TestFolder.make({ 'in/a': 'inside', 'in-too/a': 'outside' })
  await symlink('a', folder.at('in/near'))
  await symlink('../in-too/a', folder.at('in/far'))
  await symlink('../in-too', folder.at('in/folder'))
  const within = folder.at('in')
  expect(await readLimited(folder.at('in/near'), { ...limits, within })).toMatchObject({ text: 'inside' })
  expect(await readLimited(folder.at('in/far'), limits)).toMatchObject({ text: 'outside' })
  for (const name of ['in/far', 'in/folder/a', 'in-too/a']) {
    expect(await readLimited(folder.at(name), { ...limits, within })).toEqual({
      type: 'refused',
      problem: `${folder.at(name)} was left out: it leads out of ${within}.`,
    })
  }
})

test('cyclic links and unreadable files are reported with their reason', async () => {
  await using folder = await TestFolder.make({ secret: 'x' })
  await symlink('round', folder.at('round'))
  expect(await readLimited(folder.at('round'), limits)).toMatchObject({ problem: expect.stringContaining('ELOOP') })
  // Root reads everything.
  if (process.getuid?.() === 0) return
  await chmod(folder.at('secret'), 0)
  expect(await readLimited(folder.at('secret'), limits)).toMatchObject({ problem: expect.stringContaining('EACCES') })
})

test('escape codes in a path cannot reach a screen', async () => {
  await using folder = await TestFolder.make({ '\u001b[2J\n\u009bx\u202e': 'x'.repeat(11) })
  const read = await readLimited(folder.at('\u001b[2J\n\u009bx\u202e'), limits)
  expect(read).toMatchObject({ problem: expect.stringContaining(String.raw`\u{1b}[2J\n\u{9b}x\u{202e} was left out`) })
})
