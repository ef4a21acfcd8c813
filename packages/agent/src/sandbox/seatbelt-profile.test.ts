import { describe, expect, test } from 'vitest'
import type { SandboxPolicy } from './sandbox-policy.ts'
import { seatbeltProfile } from './seatbelt-profile.ts'

const work = '/Users/me/work'
const policy: SandboxPolicy = {
  writable: [work],
  scratch: '/Users/me/keep/tmp',
  caches: [{ path: '/Users/me/.npm', instead: '/Users/me/keep/home/.npm' }],
  hidden: [
    { path: '/Users/me/.ssh', isFolder: true },
    { path: '/Users/me/agent.sock', isFolder: false },
  ],
  pinned: [`${work}/.git`, `${work}/deep/nested/.git`],
  readOnly: [`${work}/.git/hooks`, `${work}/.git/config`, `${work}/.vscode`, `${work}/deep/nested/.git/hooks`],
  hiddenInside: [{ path: `${work}/.env`, isFolder: false }],
}

const profileOf = (more: Partial<SandboxPolicy> = {}): string => seatbeltProfile({ ...policy, ...more })

/** The filters of the rule with this action. */
function filtersOf(profile: string, action: string): string[] {
  const [, filters = ''] = profile.split(`(${action}\n`)
  return (filters.split(')\n(')[0] ?? '')
    .split('\n')
    .map((line) => line.trim().replace(/\)\)$/, ')'))
    .filter(Boolean)
}

describe('a Seatbelt profile', () => {
  test('denies by default, before any rule that allows', () => {
    expect(profileOf().split('\n').slice(0, 2)).toEqual(['(version 1)', '(deny default)'])
    expect(profileOf()).not.toContain('(allow default)')
  })

  test('allows writing in the working folder, the temporary folder and caches, and nowhere else', () => {
    expect(filtersOf(profileOf(), 'allow file-write*')).toEqual([
      '(subpath "/Users/me/work")',
      '(subpath "/Users/me/keep/tmp")',
      '(subpath "/Users/me/.npm")',
    ])
    expect(profileOf({ writable: [], pinned: [], readOnly: [] })).not.toContain('(subpath "/Users/me/work")')
  })

  test('denies writing control files after it has allowed the working folder', () => {
    const profile = profileOf()
    const denied = filtersOf(profile, 'deny file-write*')
    for (const path of ['/.git/hooks', '/.git/config', '/deep/nested/.git/hooks', '/.vscode'])
      expect(denied).toContain(`(subpath "/Users/me/work${path}")`)
    expect(profile.indexOf('(deny file-write*\n')).toBeGreaterThan(profile.indexOf('(allow file-write*\n'))
  })

  test('lets no folder on the way to a repository be moved', () => {
    const denied = filtersOf(profileOf(), 'deny file-write-unlink')
    for (const path of ['', '/.git', '/deep', '/deep/nested', '/deep/nested/.git'])
      expect(denied).toContain(`(literal "/Users/me/work${path}")`)
  })

  test('denies reading secrets and sockets after it has allowed reading', () => {
    const profile = profileOf()
    expect(filtersOf(profile, 'deny file-read* file-write*')).toEqual([
      '(subpath "/Users/me/.ssh")',
      '(subpath "/Users/me/agent.sock")',
      '(subpath "/Users/me/work/.env")',
    ])
    expect(profile.indexOf('(deny file-read*')).toBeGreaterThan(profile.indexOf('(allow file-read*)'))
    expect(profileOf({ hiddenInside: [] })).not.toContain('.env')
  })

  test('reaches the port of the proxy and nothing else', () => {
    const outbound = /network-outbound[^)]*\)/g
    expect(profileOf().match(outbound)).toBeNull()
    const profile = seatbeltProfile(policy, { proxyPort: 3128 })
    expect(profile.match(outbound)).toEqual(['network-outbound\n  (remote ip "localhost:3128")'])
    expect(() => seatbeltProfile(policy, { proxyPort: 70_000 })).toThrow('not a port')
  })

  test('has no rule without a filter, which would match everything', () => {
    const empty = { writable: [], hidden: [], pinned: [], readOnly: [], hiddenInside: [], caches: [] }
    const profile = profileOf(empty)
    expect(profile).not.toMatch(/\((?:allow|deny) file-write[^\s)]*\)/)
    expect(profile).not.toContain('(deny file-read*')
  })

  test('quotes what a path may contain, and refuses what it cannot', () => {
    expect(profileOf({ writable: [String.raw`/Users/me/a"b\c) (allow default)`] })).toContain(
      String.raw`(subpath "/Users/me/a\"b\\c) (allow default)")`,
    )
    for (const path of ['/Users/me/a\nb', '/Users/me/a\0b', 'relative'])
      expect(() => profileOf({ writable: [path] })).toThrow('cannot be part of a Seatbelt profile')
  })

  test('has balanced parentheses', () => {
    const text = profileOf().replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
    expect(text.split('(').length).toBe(text.split(')').length)
  })
})
