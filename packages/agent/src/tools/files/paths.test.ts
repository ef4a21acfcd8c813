import { join } from 'node:path'
import fc from 'fast-check'
import { execFileSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { realPathOf, shownName, shownPath } from './paths.ts'

describe('realPathOf', () => {
  test('follows links in the middle, at the end, in chains and to missing targets', async () => {
    await using folder = await TestFolder.make({ 'real/file': '' })
    await symlink(folder.at('real'), folder.at('absolute'))
    await symlink('real/../real/missing/deep', folder.at('dangling'))
    await symlink('dangling', folder.at('chain'))
    const real = (path: string) => realPathOf(path, { cwd: folder.path }).slice(folder.path.length)
    expect(real('absolute/file')).toBe('/real/file')
    expect(real('absolute/new/name')).toBe('/real/new/name')
    expect(real('dangling')).toBe('/real/missing/deep')
    expect(real('chain/x')).toBe('/real/missing/deep/x')
    expect(real('real/file/below')).toBe('/real/file/below')
    expect(real('.')).toBe('')
  })

  test('ends on cyclic links, also on long and branching ones', async () => {
    await using folder = await TestFolder.make()
    await symlink('b/x', folder.at('a'))
    await symlink('a/y', folder.at('b'))
    await symlink('self', folder.at('self'))
    for (const path of ['a', 'b/c', 'self', `${'self/'.repeat(500)}x`]) {
      expect(realPathOf(path, { cwd: folder.path }).startsWith(folder.path)).toBe(true)
    }
  })

  test.runIf(process.platform === 'linux')(
    'agrees with realpath on random paths through links and missing parts',
    async () => {
      // So deep that no path climbs out of it to files of other tests.
      const deep = 'd/'.repeat(10)
      await using folder = await TestFolder.make({
        [`${deep}a/c/file`]: '',
        [`${deep}b/file`]: '',
        [`${deep}outside/secret`]: '',
      })
      const cwd = folder.at(deep)
      const links = {
        in: 'a',
        'a/up': '..',
        'a/c/over': '../../b',
        gone: 'missing/x',
        chain: 'gone/y',
        'b/root': '/',
        'a/far': join(cwd, 'outside'),
      }
      for (const [name, target] of Object.entries(links)) await symlink(target, join(cwd, name))
      const parts = [
        'a',
        'b',
        'c',
        'file',
        'in',
        'up',
        'over',
        'gone',
        'chain',
        'far',
        'root',
        'new',
        'secret',
        '.',
        '..',
        '..',
        '',
      ]
      const path = fc
        .array(fc.constantFrom(...parts), { minLength: 1, maxLength: 8 })
        .map((names) => `./${names.join('/')}`)
      const seed = Math.floor(Math.random() * 2 ** 31)
      const paths = fc.sample(path, { numRuns: 1000, seed })
      const expected = execFileSync('realpath', ['-m', '-L', '-z', '--', ...paths], {
        cwd,
        encoding: 'utf8',
      })
      const known = expected.split('\0').slice(0, -1)
      const differing = paths.filter((given, index) => realPathOf(given, { cwd }) !== known[index])
      expect({ seed, differing }).toEqual({ seed, differing: [] })
    },
  )

  test('expands the home folder only at the start', async () => {
    await using folder = await TestFolder.make()
    expect(realPathOf('~', { cwd: folder.path })).toBe(realPathOf(homedir(), { cwd: '/' }))
    expect(realPathOf('./~', { cwd: folder.path })).toBe(folder.at('~'))
    expect(realPathOf('~user/x', { cwd: folder.path })).toBe(folder.at('~user/x'))
  })

  test.each([
    '../../../../../../etc/passwd',
    'a/../../b',
    String.raw`..\..\windows`,
    '%2e%2e/%2e%2e/etc',
    '..%2fetc',
    '....//....//etc',
    '/etc/../etc/./passwd',
    '//etc//passwd',
    '-rf',
    '--help',
    'C:\\Windows',
    '\\\\server\\share',
    'con',
    'aux.txt',
    '\u202egnp.exe',
    'e\u0301',
    'n'.repeat(300),
    ' leading and trailing ',
    'new\nline',
    '~root/.ssh/id_rsa',
    '$HOME/x',
    'file:///etc/passwd',
  ])('returns a normalized absolute path for %j', async (path) => {
    await using folder = await TestFolder.make()
    const real = realPathOf(path, { cwd: folder.path })
    expect(real.startsWith('/')).toBe(true)
    expect(real.split('/').filter((part) => part === '..' || part === '.')).toEqual([])
  })
})

test('a path below the working folder is shown relative to it, others unchanged', async () => {
  await using folder = await TestFolder.make()
  await mkdir(folder.at('work'))
  await symlink('work', folder.at('link'))
  for (const cwd of [folder.at('work'), folder.at('link')]) {
    expect(shownPath(folder.at('work/src/a.ts'), { cwd })).toBe('src/a.ts')
    expect(shownPath(folder.at('work'), { cwd })).toBe('.')
    expect(shownPath(folder.at('work/..b'), { cwd })).toBe('..b')
    expect(shownPath(folder.at('worker/a'), { cwd })).toBe(folder.at('worker/a'))
    expect(shownPath(folder.at('other'), { cwd })).toBe(folder.at('other'))
  }
})

test('a name with control characters is quoted', () => {
  expect(shownName('plain name.txt')).toBe('plain name.txt')
  expect(shownName('a\nb\u001b[31m')).toBe(String.raw`"a\nb\u001b[31m"`)
})
