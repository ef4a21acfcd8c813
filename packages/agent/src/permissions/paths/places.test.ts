import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { isControlFile } from '../judge-path.ts'
import { exactPath, meets, parsePathPattern } from './path-pattern.ts'
import { realPath } from './real-path.ts'
import { holdsSecrets, isSecretPath, mayBeSecret } from './secret-files.ts'
import { survey } from './survey.ts'

const at = (path: string): ReturnType<typeof exactPath> => exactPath(path)

test.each([
  ['/repo/.env', true],
  ['/repo/deep/.env.production', true],
  ['/repo/.ENV', true],
  ['/repo/.env.example', false],
  ['/home/me/.ssh/id_ed25519', true],
  ['/home/me/.ssh/known_hosts', false],
  ['/repo/server.pem', true],
  ['/repo/key.pub', false],
  ['/etc/shadow', true],
  ['/proc/1/environ', true],
  ['/proc/cpuinfo', false],
  ['/dev/sda', true],
  ['/dev/null', false],
  ['/repo/environment.ts', false],
  ['/repo/src/credentials.ts', false],
])('whether %s may be a secret: %s', (path, isSecret) => {
  expect(mayBeSecret(at(path))).toBe(isSecret)
})

test.each([
  ['/home/me', true],
  ['/home', true],
  ['/', true],
  ['/etc', true],
  ['/home/me/.config', true],
  ['/home/me/projects', false],
  ['/repo', false],
])('whether %s contains secrets: %s', (path, holds) => {
  expect(holdsSecrets(at(path), at('/home/me'))).toBe(holds)
})

test.each([
  ['/repo/.git/config', true],
  ['/repo/.GIT/hooks/pre-commit', true],
  ['/repo/.gitignore', false],
  ['/repo/.github/workflows/ci.yml', true],
  ['/repo/.github/dependabot.yml', false],
  ['/repo/.vscode/tasks.json', true],
  ['/home/me/.bashrc', true],
  ['/home/me/.ssh/authorized_keys', true],
  ['/etc/hosts', true],
  ['/repo/src/etc/hosts', false],
])('whether %s controls what other programs run: %s', (path, isControl) => {
  expect(isControlFile(at(path))).toBe(isControl)
})

describe('two patterns', () => {
  test.each([
    ['/a/*/c', '/a/b/*', true],
    ['/a/**', '/a', true],
    ['/a/**/z', '/a/b/c/z', true],
    ['/a/b?', '/a/bc', true],
    ['/a/b?', '/a/b', false],
    ['/a/*.ts', '/a/*.js', false],
    ['/a/x*', '/a/*y', true],
    ['/a', '/ab', false],
  ])('%s and %s may match the same path: %s', (left, right, meet) => {
    expect(meets(parsePathPattern(left), parsePathPattern(right))).toBe(meet)
    expect(meets(parsePathPattern(right), parsePathPattern(left))).toBe(meet)
  })

  test('are compared in time bounded by the product of their lengths', () => {
    const stars = `/${'*a'.repeat(200)}`
    expect(meets(parsePathPattern(stars), parsePathPattern(`/${'a'.repeat(400)}b`))).toBe(false)
  })
})

describe('the target of a path', () => {
  test('is resolved through links, also to a file that does not exist yet', async () => {
    await using folder = await TestFolder.make({ 'real/a.txt': '' })
    await symlink('real', folder.at('link'))
    await symlink('real/new/b.txt', folder.at('dangling'))
    expect(realPath(folder.at('link/a.txt'))).toBe(folder.at('real/a.txt'))
    expect(realPath(folder.at('link/none/x'))).toBe(folder.at('real/none/x'))
    expect(realPath(folder.at('dangling'))).toBe(folder.at('real/new/b.txt'))
  })

  test('is the path itself if it is cyclic', async () => {
    await using folder = await TestFolder.make()
    await symlink('b', folder.at('a'))
    await symlink('a', folder.at('b'))
    expect(realPath(folder.at('a/x'))).toBe(folder.at('a/x'))
  })
})

test('a path with links and `..` is resolved as the kernel does', async () => {
  await using folder = await TestFolder.make()
  const name = fc.constantFrom('a', 'b', 'c')
  const step = fc.constantFrom('a', 'b', 'c', '..', '.', '')
  const path = fc.array(step, { minLength: 1, maxLength: 6 }).map((steps) => steps.join('/'))
  const place = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'))
  const entry = fc.record({ place, kind: fc.constantFrom('folder', 'file', 'link', 'link'), target: path })
  let compared = 0
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), fc.array(path, { minLength: 1, maxLength: 8 }), (entries, paths) => {
      rmSync(folder.at('root'), { recursive: true, force: true })
      mkdirSync(folder.at('root'))
      for (const each of entries) make(folder.at('root'), each)
      for (const each of paths) {
        const whole = `${folder.at('root')}/${each}`
        const real = kernelPath(whole)
        if (real === undefined) continue
        compared += 1
        expect(realPath(whole)).toBe(real)
      }
    }),
    { numRuns: 500 },
  )
  expect(compared).toBeGreaterThan(200)
})

interface PlannedEntry {
  place: string
  kind: string
  target: string
}

/**
 * Skips what cannot be created because something else exists at its path, or because a link would put it outside of the
 * root.
 */
function make(root: string, { place, kind, target }: PlannedEntry): void {
  const path = `${root}/${place}`
  if (!isInside(root, path)) return
  try {
    mkdirSync(path.slice(0, path.lastIndexOf('/')), { recursive: true })
    if (kind === 'folder') mkdirSync(path)
    else if (kind === 'file') writeFileSync(path, '', { flag: 'wx' })
    else symlinkSync(target, path)
  } catch {
    // another entry exists
  }
}

/** By the nearest existing folder above the path. */
function isInside(root: string, path: string): boolean {
  const above = path.slice(0, path.lastIndexOf('/'))
  const real = kernelPath(above)
  return real === undefined ? isInside(root, above) : real === root || real.startsWith(`${root}/`)
}

function kernelPath(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    return undefined // it cannot be resolved
  }
}

test('a process link is not followed, since its target differs for each process', () => {
  expect(realPath('/proc/self/cwd/../x')).toMatch(/^\/proc\/\d+\/cwd\/x$/)
  expect(mayBeSecret(at(realPath('/proc/self/root/etc/passwd')))).toBe(true)
})

test('`isSecretPath` and `mayBeSecret` agree', () => {
  const name = fc.constantFrom(
    'repo',
    'src',
    '.env',
    '.ENV',
    '.env.example',
    'id_rsa',
    'x.pem',
    'x.pub',
    '.config',
    'gh',
    'etc',
  )
  const more = fc.constantFrom(
    'shadow',
    'ssh',
    'dev',
    'sda',
    'proc',
    'environ',
    '.ssh',
    'known_hosts',
    'credentials',
    '.npmrc',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(name, more, fc.string()), { minLength: 1, maxLength: 5 }), (names) => {
      const path = `/${names
        .map((each) => each.replaceAll('/', ''))
        .filter((each) => !/^\.?$/.test(each))
        .join('/')}`
      expect(isSecretPath(path)).toBe(mayBeSecret(at(path)))
    }),
    { numRuns: 2000 },
  )
})

describe('a survey of a folder', () => {
  test('finds names with blanks, names like options, links that lead out, and secrets', async () => {
    await using folder = await TestFolder.make({
      'plain/a.txt': '',
      'plain/b/c.txt': '',
      'odd/a b': '',
      'dash/b/-x': '',
    })
    await folder.write('secret/b/.env', '')
    mkdirSync(folder.at('linked'))
    symlinkSync('../plain', folder.at('linked/out'))
    symlinkSync('a.txt', folder.at('plain/inside'))
    expect(survey([folder.at('plain')])).toEqual({ isPlain: true, hasDash: false, links: [], secrets: [] })
    expect(survey([folder.at('odd')])?.isPlain).toBe(false)
    expect(survey([folder.at('dash')])?.hasDash).toBe(true)
    expect(survey([folder.at('dash')], { isFlat: true })?.hasDash).toBe(false)
    expect(survey([folder.at('secret')])?.secrets).toEqual([folder.at('secret/b/.env')])
    expect(survey([folder.at('secret')], { skipped: ['b'] })?.secrets).toEqual([])
    expect(survey([folder.at('linked')])?.links).toEqual([folder.at('linked/out')])
  })

  test('returns undefined if there are too many files', async () => {
    await using folder = await TestFolder.make()
    for (let count = 0; count < 10_001; count += 1) writeFileSync(folder.at(`f${count}`), '')
    expect(survey([folder.path])).toBeUndefined()
  })
})
