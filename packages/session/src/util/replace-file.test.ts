import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { replaceFile } from './replace-file.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tapetree-replace-'))
})
afterEach(() => rm(folder, { recursive: true }))

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

describe('a replaced file', () => {
  test('has the new content, and is readable only by its owner whatever the old mode was', async () => {
    const path = join(folder, 'a')
    await writeFile(path, 'old', { mode: 0o644 })
    await replaceFile(path, 'new')
    expect([await readFile(path, 'utf8'), await modeOf(path), await readdir(folder)]).toEqual(['new', 0o600, ['a']])
  })

  test('replaces a symbolic link, and leaves its target unchanged', async () => {
    await writeFile(join(folder, 'target'), 'old')
    await symlink('target', join(folder, 'link'))
    await replaceFile(join(folder, 'link'), 'new')
    expect([await readFile(join(folder, 'target'), 'utf8'), await readFile(join(folder, 'link'), 'utf8')]).toEqual([
      'old',
      'new',
    ])
  })

  test('is prepared and confirmed while the old one is still there', async () => {
    const path = join(folder, 'a')
    await writeFile(path, 'old')
    const seen: string[] = []
    await replaceFile(path, 'new', {
      mode: 0o644,
      prepare: (file) => file.chmod(0o640),
      confirm: async () => void seen.push(await readFile(path, 'utf8')),
    })
    expect([seen, await readFile(path, 'utf8'), await modeOf(path)]).toEqual([['old'], 'new', 0o640])
  })
})

describe('a failed replacement leaves the old file and nothing else', () => {
  test.each([
    ['preparing it', { prepare: () => Promise.reject(new Error('broken')) }],
    ['confirming it', { confirm: () => Promise.reject(new Error('broken')) }],
  ])('while %s', async (_, options) => {
    const path = join(folder, 'a')
    await writeFile(path, 'old')
    await expect(replaceFile(path, 'new', options)).rejects.toThrow('broken')
    expect([await readFile(path, 'utf8'), await readdir(folder)]).toEqual(['old', ['a']])
  })

  test('if it cannot be renamed', async () => {
    await mkdir(join(folder, 'a'))
    await expect(replaceFile(join(folder, 'a'), 'new')).rejects.toThrow(/EISDIR|EEXIST|ENOTEMPTY|EPERM/)
    expect(await readdir(folder)).toEqual(['a'])
  })

  test('if the disk is full', async () => {
    const module = new URL('./replace-file.ts', import.meta.url).href
    const program = `import { replaceFile } from ${JSON.stringify(module)}
      await replaceFile(process.argv[1], 'x'.repeat(100_000)).catch((error) => console.log(error.code))`
    const path = join(folder, 'a')
    await writeFile(path, 'old')
    // A file size limit simulates a full disk: the write fails after the file was created.
    const flags = ['--input-type=module', '-e', program, path]
    const { stdout } = await promisify(execFile)('sh', [
      '-c',
      'ulimit -f 1; exec "$0" "$@"',
      process.execPath,
      ...flags,
    ])
    expect([stdout, await readFile(path, 'utf8'), await readdir(folder)]).toEqual(['EFBIG\n', 'old', ['a']])
  })

  test('if the folder is missing', async () => {
    await expect(replaceFile(join(folder, 'none', 'a'), 'new')).rejects.toThrow('ENOENT')
  })
})

test('concurrent replacements leave one of the contents, complete', async () => {
  const path = join(folder, 'a')
  const contents = Array.from({ length: 20 }, (_, index) => String(index).repeat(10_000))
  await Promise.all(contents.map((content) => replaceFile(path, content)))
  expect(contents).toContain(await readFile(path, 'utf8'))
  expect(await readdir(folder)).toEqual(['a'])
})
