import { symlink } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { isControlFile } from './control-files.ts'
import { exactPath, meets, parsePathPattern } from './path-pattern.ts'
import { realPath } from './real-path.ts'
import { holdsSecrets, mayBeSecret } from './secret-files.ts'

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
])('whether secrets are below %s: %s', (path, holds) => {
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
])('whether %s decides what other programs run: %s', (path, isControl) => {
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
  ])('%s and %s may mean the same path: %s', (left, right, meet) => {
    expect(meets(parsePathPattern(left), parsePathPattern(right))).toBe(meet)
    expect(meets(parsePathPattern(right), parsePathPattern(left))).toBe(meet)
  })

  test('are compared in a time that their lengths multiplied bound', () => {
    const stars = `/${'*a'.repeat(200)}`
    expect(meets(parsePathPattern(stars), parsePathPattern(`/${'a'.repeat(400)}b`))).toBe(false)
  })
})

describe('where a path leads', () => {
  test('is found through links, also to what does not exist yet', async () => {
    await using folder = await TestFolder.make({ 'real/a.txt': '' })
    await symlink('real', folder.at('link'))
    await symlink('real/new/b.txt', folder.at('dangling'))
    expect(realPath(folder.at('link/a.txt'))).toBe(folder.at('real/a.txt'))
    expect(realPath(folder.at('link/none/x'))).toBe(folder.at('real/none/x'))
    expect(realPath(folder.at('dangling'))).toBe(folder.at('real/new/b.txt'))
  })

  test('stays as it is in a circle', async () => {
    await using folder = await TestFolder.make()
    await symlink('b', folder.at('a'))
    await symlink('a', folder.at('b'))
    expect(realPath(folder.at('a/x'))).toBe(folder.at('a/x'))
  })
})
