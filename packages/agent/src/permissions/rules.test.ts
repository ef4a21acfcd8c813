import { symlink } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { usePath } from './paths/path-use.ts'
import {
  effectOf,
  matchCommand,
  matchHost,
  matchPath,
  matchTool,
  noRules,
  ruleSchema,
  type Effect,
  type Rule,
} from './rules.ts'
import { anything, literal } from './shell/words/word.ts'

const tool = (effect: Effect): Rule => ({ effect, type: 'tool', match: 'x' })
const always = (): 'yes' => 'yes'

describe('rules in several layers', () => {
  test('deny wins over ask and ask over allow, in any order and layer', () => {
    const layers = (user: Effect[], project: Effect[], session: Effect[]): Effect | undefined =>
      effectOf(
        { user: user.map(tool), project: project.map(tool), session: session.map(tool), trustsProject: true },
        always,
      )
    expect(layers(['allow', 'deny', 'ask'], [], [])).toBe('deny')
    expect(layers(['deny'], ['allow'], ['allow'])).toBe('deny')
    expect(layers(['allow'], ['deny'], ['allow'])).toBe('deny')
    expect(layers(['allow'], ['ask'], ['allow'])).toBe('ask')
    expect(layers(['ask'], ['allow'], ['allow'])).toBe('ask')
    expect(layers(['allow'], [], [])).toBe('allow')
    expect(layers([], [], [])).toBeUndefined()
  })

  test('allow rules of a project count only if the user trusts it; ask and deny rules always count', () => {
    const project = (effect: Effect, trustsProject: boolean): Effect | undefined =>
      effectOf({ ...noRules, project: [tool(effect)], trustsProject }, always)
    expect(project('allow', false)).toBeUndefined()
    expect(project('allow', true)).toBe('allow')
    expect(project('ask', false)).toBe('ask')
    expect(project('deny', false)).toBe('deny')
  })

  test('a trusted project never widens ask and deny rules of the user', () => {
    for (const effect of ['ask', 'deny'] as const) {
      const layers = { ...noRules, user: [tool(effect)], project: [tool('allow')], trustsProject: true }
      expect(effectOf(layers, always)).toBe(effect)
    }
  })

  test('a deny rule that may match asks, an allow rule that may match does nothing', () => {
    expect(effectOf({ ...noRules, user: [tool('deny')] }, () => 'maybe')).toBe('ask')
    expect(effectOf({ ...noRules, user: [tool('ask')] }, () => 'maybe')).toBe('ask')
    expect(effectOf({ ...noRules, user: [tool('allow')] }, () => 'maybe')).toBeUndefined()
  })
})

describe('a rule for commands', () => {
  const matched = (effect: Effect, match: string | string[], ...words: (string | undefined)[]): string =>
    matchCommand(
      { effect, type: 'command', match },
      words.map((word) => (word === undefined ? anything : literal(word))),
    )

  test('that allows matches exactly these words, or any continuation with `*`', () => {
    expect(matched('allow', 'npm run test', 'npm', 'run', 'test')).toBe('yes')
    expect(matched('allow', 'npm run test', 'npm', 'run', 'test', '--fix')).toBe('no')
    expect(matched('allow', 'npm run test', 'npm', 'run', 'test2')).toBe('no')
    expect(matched('allow', 'npm run test *', 'npm', 'run', 'test', '--fix')).toBe('yes')
    expect(matched('allow', 'npm run test *', 'npm', 'run', 'testing')).toBe('no')
    expect(matched('allow', 'npm *', './npm', 'x')).toBe('no')
    expect(matched('allow', ['git', 'commit', '-m', 'two words'], 'git', 'commit', '-m', 'two words')).toBe('yes')
    expect(matched('allow', 'git log *', 'git', undefined)).toBe('no')
  })

  test('that denies matches these words in this order, with any words between and after them', () => {
    expect(matched('deny', 'git push', 'git', '-C', '/x', 'push', '--force')).toBe('yes')
    expect(matched('deny', 'git push', '/usr/bin/git', 'push')).toBe('yes')
    expect(matched('deny', 'git push *', 'git', 'push')).toBe('yes')
    expect(matched('deny', 'git push', 'git', 'pull')).toBe('no')
    expect(matched('deny', 'git push', 'hg', 'push')).toBe('no')
    expect(matched('deny', 'git push', 'git', undefined)).toBe('maybe')
  })
})

describe('a rule for paths', () => {
  const place = { cwd: '/repo', home: '/home/me' }
  const matched = (effect: Effect, match: string, path: string): string =>
    matchPath({ effect, type: 'write', match }, { ...usePath(path), type: 'write' }, place)

  test('matches a path and everything below it, but no sibling with a similar name', () => {
    expect(matched('allow', './src', '/repo/src')).toBe('yes')
    expect(matched('allow', './src', '/repo/src/deep/a.ts')).toBe('yes')
    expect(matched('allow', './src', '/repo/src-evil/a.ts')).toBe('no')
    expect(matched('allow', '~/notes', '/home/me/notes/a.md')).toBe('yes')
    expect(matched('allow', '/repo/*/dist', '/repo/a/dist/x.js')).toBe('yes')
    expect(matched('deny', '**/secret', '/anywhere/at/all/secret/x')).toBe('yes')
  })

  test('does not follow `..` out of its folder', () => {
    expect(matched('allow', './src', '/repo/src/../../etc/x')).toBe('no')
  })

  test('for writing does not cover reading', () => {
    const rule: Rule = { effect: 'allow', type: 'write', match: '/repo' }
    expect(matchPath(rule, { ...usePath('/repo/a'), type: 'read' }, place)).toBe('no')
  })

  test('follows links on both sides', async () => {
    await using folder = await TestFolder.make({ 'real/a.txt': '', 'other/b.txt': '' })
    await symlink(folder.at('real'), folder.at('link'))
    await symlink(folder.at('other'), folder.at('real/way-out'))
    const allowed = (match: string, path: string): string => matched('allow', folder.at(match), folder.at(path))
    expect(allowed('link', 'real/a.txt')).toBe('yes')
    expect(allowed('real', 'link/a.txt')).toBe('yes')
    expect(allowed('real', 'real/way-out/b.txt')).toBe('no')
    expect(matched('deny', folder.at('other'), folder.at('real/way-out/b.txt'))).toBe('yes')
  })
})

test('a rule for hosts matches one host, its subdomains or all hosts', () => {
  const matched = (match: string, host: string): string => matchHost({ effect: 'allow', type: 'fetch', match }, host)
  expect(matched('example.org', 'example.org')).toBe('yes')
  expect(matched('example.org', 'evil-example.org')).toBe('no')
  expect(matched('*.example.org', 'docs.example.org')).toBe('yes')
  expect(matched('*.example.org', 'example.org')).toBe('no')
  expect(matched('*.example.org', 'evilexample.org')).toBe('no')
  expect(matched('*', 'anything.net')).toBe('yes')
})

test('a rule for tools matches one name, or all names with a prefix', () => {
  const matched = (match: string, name: string): string => matchTool({ effect: 'allow', type: 'tool', match }, name)
  expect(matched('server__read', 'server__read')).toBe('yes')
  expect(matched('server__read', 'server__read_all')).toBe('no')
  expect(matched('server__*', 'server__read_all')).toBe('yes')
})

test('a rule that cannot match is rejected', () => {
  const refused = [
    { effect: 'allow', type: 'read', match: 'relative' },
    { effect: 'allow', type: 'read', match: '' },
    { effect: 'allow', type: 'command', match: '  ' },
    { effect: 'allow', type: 'command', match: [] },
    { effect: 'perhaps', type: 'tool', match: 'x' },
    { effect: 'allow', type: 'tool', match: 'x', also: 1 },
  ]
  expect(refused.map((rule) => ruleSchema.safeParse(rule).success)).toEqual(refused.map(() => false))
})

describe('a rule that does not match', () => {
  const rules: Rule[] = [
    { effect: 'deny', type: 'command', match: '*' },
    { effect: 'deny', type: 'read', match: '/' },
    { effect: 'deny', type: 'write', match: '/' },
    { effect: 'deny', type: 'fetch', match: '*' },
    { effect: 'deny', type: 'tool', match: '*' },
  ]

  test('of another kind never matches, however wide it is', () => {
    const place = { cwd: '/repo', home: '/home/me' }
    const matching = (match: (rule: Rule) => string): string[] =>
      rules.filter((rule) => match(rule) !== 'no').map(({ type }) => type)
    expect(matching((rule) => matchCommand(rule, [literal('ls')]))).toEqual(['command'])
    expect(matching((rule) => matchHost(rule, 'a.example'))).toEqual(['fetch'])
    expect(matching((rule) => matchTool(rule, 'bash'))).toEqual(['tool'])
    for (const type of ['read', 'write'] as const)
      expect(matching((rule) => matchPath(rule, { ...usePath('/repo/a'), type }, place))).toEqual([type])
    for (const rule of rules) {
      const results = [matchCommand(rule, [literal('ls')]), matchHost(rule, 'a.example'), matchTool(rule, 'bash')]
      expect(results.every((each) => each === 'yes' || each === 'no')).toBe(true)
    }
  })

  test('asks for nothing', () => {
    expect(effectOf({ ...noRules, user: [tool('ask'), tool('deny')] }, () => 'no')).toBeUndefined()
    expect(noRules).toEqual({ user: [], project: [], session: [], trustsProject: false })
  })

  test('denies no other place, command or tool', () => {
    const place = { cwd: '/repo', home: '/home/me' }
    const read: Rule = { effect: 'deny', type: 'read', match: '/repo/secret' }
    expect(matchPath(read, { ...usePath('/repo/src/a'), type: 'read' }, place)).toBe('no')
    const push: Rule = { effect: 'deny', type: 'command', match: 'git  push' }
    expect(matchCommand(push, ['git', 'push'].map(literal))).toBe('yes')
    expect(matchCommand(push, ['/usr/bin/git', 'push'].map(literal))).toBe('yes')
    expect(matchCommand(push, ['/opt/git/bin/npm', 'push'].map(literal))).toBe('no')
    expect(matchCommand(push, [anything, literal('push')])).toBe('no')
    const byPath: Rule = { effect: 'deny', type: 'command', match: '/usr/bin/git push' }
    expect(matchCommand(byPath, ['/usr/bin/git', 'push'].map(literal))).toBe('yes')
    const tools: Rule = { effect: 'deny', type: 'tool', match: 'mcp_*' }
    expect([matchTool(tools, 'mcp_read'), matchTool(tools, 'memory')]).toEqual(['yes', 'no'])
  })
})

test('the schema accepts every kind of rule and effect, and rejects paths that begin elsewhere', () => {
  for (const effect of ['allow', 'ask', 'deny']) {
    for (const [type, match] of [
      ['command', 'git log *'],
      ['command', ['git', 'log']],
      ['read', '~/notes'],
      ['write', './src'],
      ['read', '~'],
      ['read', '.'],
      ['read', '**/a'],
      ['fetch', 'a.example'],
      ['tool', 'bash'],
    ] as const)
      expect([type, match, ruleSchema.safeParse({ effect, type, match }).success]).toEqual([type, match, true])
  }
  for (const match of ['src/a', 'a~', '..', '~me', 'x', ''])
    expect([match, ruleSchema.safeParse({ effect: 'allow', type: 'read', match }).success]).toEqual([match, false])
  expect(ruleSchema.safeParse({ effect: 'permit', type: 'tool', match: 'x' }).success).toBe(false)
  const { error } = ruleSchema.safeParse({ effect: 'allow', type: 'read', match: 'src' })
  expect(error?.message).toContain('A path pattern must begin with /, ~/, ./ or **/.')
})
