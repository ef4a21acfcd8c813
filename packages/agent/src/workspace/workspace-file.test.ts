import { execFileSync } from 'node:child_process'
import { rename, symlink } from 'node:fs/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { noRules, type RuleLayers } from '../permissions/rules.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { readWorkspaceFile, type FilePart, type WorkspaceFile } from './workspace-file.ts'

const whole: FilePart = { offset: 0, maxBytes: 1024 * 1024 }

function read(folder: TestFolder, path: string, part = whole, rules: RuleLayers = noRules): Promise<WorkspaceFile> {
  return readWorkspaceFile(path, part, { mode: 'ask', rules, cwd: folder.path, home: '/nowhere' })
}

test('a file is read with its kind, its size and its version', async () => {
  const png = Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')
  await using folder = await TestFolder.make({ 'sub/a.txt': 'hello\n', 'p.png': png, 'b.bin': 'a\0b' })
  const text = await read(folder, 'sub/a.txt')
  expect(text).toMatchObject({ kind: { type: 'text', encoding: 'utf-8' }, size: 6, bytes: Buffer.from('hello\n') })
  expect(text.nextOffset).toBeUndefined()
  expect((await read(folder, './sub/../sub/a.txt')).version).toBe(text.version)
  expect((await read(folder, 'p.png')).kind).toEqual({ type: 'image', mediaType: 'image/png' })
  expect((await read(folder, 'b.bin')).kind).toMatchObject({ type: 'binary' })
  await folder.write('other', 'hello\n')
  await rename(folder.at('other'), folder.at('sub/a.txt'))
  expect((await read(folder, 'sub/a.txt')).version).not.toBe(text.version)
})

test('parts of a text fit together and split no character, whatever their size', async () => {
  await using folder = await TestFolder.make()
  const encodings = ['utf-8', 'utf-16le', 'utf-16be'] as const
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary', maxLength: 60 }).map((text) => text.replaceAll('\0', 'x')),
      fc.constantFrom(...encodings),
      fc.integer({ min: 8, max: 40 }),
      async (text, encoding, maxBytes) => {
        const marked = `\ufeff${text}`
        const bytes = Buffer.from(marked, encoding === 'utf-8' ? 'utf8' : 'utf16le')
        await folder.write('text', encoding === 'utf-16be' ? bytes.swap16() : bytes)
        let together = ''
        for (let offset: number | undefined = 0; offset !== undefined;) {
          const part: WorkspaceFile = await read(folder, 'text', { offset, maxBytes })
          const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
          together += decoder.decode(part.bytes)
          offset = part.nextOffset
        }
        expect(together).toBe(marked)
      },
    ),
    { numRuns: 200 },
  )
})

test('a part beyond the end is empty, and bytes that are no text are not lost', async () => {
  await using folder = await TestFolder.make({ a: 'abc', bad: Buffer.alloc(40, 0xf0) })
  expect(await read(folder, 'a', { offset: 99, maxBytes: 16 })).toMatchObject({ bytes: Buffer.alloc(0), size: 3 })
  let size = 0
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const part: WorkspaceFile = await read(folder, 'bad', { offset, maxBytes: 16 })
    expect(part.bytes.length).toBeGreaterThan(0)
    size += part.bytes.length
    offset = part.nextOffset
  }
  expect(size).toBe(40)
})

test.each(['../x', '/etc/passwd', 'sub/../../x', 'link', 'link/x', 'a\0b', '/', '..', 'file-link'])(
  'the path %j leads outside and is not looked at',
  async (path) => {
    await using around = await TestFolder.make({ 'inner/sub/a': 'a', x: 'outside' })
    await symlink(around.path, around.at('inner/link'))
    await symlink(around.at('x'), around.at('inner/file-link'))
    const policy = { mode: 'ask' as const, rules: noRules, cwd: around.at('inner'), home: '/nowhere' }
    await expect(readWorkspaceFile(path, whole, policy)).rejects.toMatchObject({ code: 'outside-folder' })
  },
)

test('a secret is not shown under any name, nor what a rule forbids', async () => {
  await using folder = await TestFolder.make({
    '.env': 'A=1',
    'keys/x.pem': 'x',
    'notes/a.md': 'a',
    '.env.example': '',
  })
  await symlink(folder.at('.env'), folder.at('harmless.txt'))
  await symlink(folder.at('notes/a.md'), folder.at('id_rsa'))
  for (const path of ['.env', './sub/../.env', 'keys/x.pem', 'harmless.txt', 'id_rsa'])
    await expect(read(folder, path)).rejects.toMatchObject({
      code: expect.stringMatching(/secret-file|file-not-found/),
    })
  await expect(read(folder, 'harmless.txt')).rejects.toMatchObject({ code: 'secret-file' })
  expect(await read(folder, '.env.example')).toMatchObject({ size: 0 })
  for (const effect of ['deny', 'ask'] as const) {
    const rules = { ...noRules, user: [{ effect, type: 'read' as const, match: './notes' }] }
    await expect(read(folder, 'notes/a.md', whole, rules)).rejects.toMatchObject({ code: 'secret-file' })
  }
})

test('a missing file, a folder and a pipe are not files', async () => {
  await using folder = await TestFolder.make({ 'sub/a': 'a' })
  execFileSync('mkfifo', [folder.at('pipe')])
  await symlink('loop', folder.at('loop'))
  for (const path of ['none', 'sub/a/b', 'loop', 'x'.repeat(300)])
    await expect(read(folder, path)).rejects.toMatchObject({ code: 'file-not-found' })
  for (const path of ['sub', '.', 'pipe', ''])
    await expect(read(folder, path)).rejects.toMatchObject({ code: 'not-a-file' })
})
