import { symlink } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import type { Access } from '../tools/tool.ts'
import { judgeCall } from './judge-call.ts'
import { permissionModes, type PermissionMode } from './modes.ts'
import type { Policy } from './policy.ts'
import { noRules, type Rule } from './rules.ts'

const cwd = '/repo'
const home = '/home/me'

function policyWith(given: Partial<Policy> & { user?: Rule[] } = {}): Policy {
  const { user = [], ...rest } = given
  return { mode: 'ask', cwd, home, rules: { ...noRules, user }, ...rest }
}

function effect(access: Access[], policy: Policy, tool: { tool?: string; readOnly?: boolean } = {}): string {
  return judgeCall({ tool: 'some_tool', readOnly: false, ...tool, access }, policy).effect
}

const read = (path: string, isRecursive = false): Access[] => [{ type: 'read', path, isRecursive }]
const write = (path: string): Access[] => [{ type: 'write', path }]
const command = (text: string): Access[] => [{ type: 'command', command: text, cwd }]
const fetch: Access[] = [{ type: 'fetch', url: 'https://example.org/page' }]
const foreign: Access[] = [{ type: 'tool', name: 'server__act', readOnly: false }]

describe('actions without a request', () => {
  const table: Record<
    string,
    { access: Access[]; readOnly?: boolean; effects: Record<Exclude<PermissionMode, 'sandboxed'>, string> }
  > = {
    'a file is read': {
      access: read('/repo/a.ts'),
      readOnly: true,
      effects: { ask: 'allow', 'accept-edits': 'allow', plan: 'allow', auto: 'allow' },
    },
    'a secret is read': {
      access: read('/repo/.env'),
      readOnly: true,
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'ask', auto: 'ask' },
    },
    'a file in the working folder is written': {
      access: write('/repo/a.ts'),
      effects: { ask: 'ask', 'accept-edits': 'allow', plan: 'deny', auto: 'allow' },
    },
    'a file elsewhere is written': {
      access: write('/elsewhere/a.ts'),
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'deny', auto: 'allow' },
    },
    'a file that makes other programs run something is written': {
      access: write('/repo/.git/config'),
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'deny', auto: 'ask' },
    },
    'a command reads': {
      access: command('ls -la | wc -l'),
      effects: { ask: 'allow', 'accept-edits': 'allow', plan: 'allow', auto: 'allow' },
    },
    'a command does more': {
      access: command('npm test'),
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'deny', auto: 'allow' },
    },
    'a command cannot be analyzed': {
      access: command('$x'),
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'deny', auto: 'allow' },
    },
    'a page is fetched': {
      access: fetch,
      readOnly: true,
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'ask', auto: 'allow' },
    },
    'a third-party tool is used': {
      access: foreign,
      effects: { ask: 'ask', 'accept-edits': 'ask', plan: 'deny', auto: 'allow' },
    },
    'a question is asked to the user': {
      access: [{ type: 'ask' }],
      readOnly: true,
      effects: { ask: 'allow', 'accept-edits': 'allow', plan: 'allow', auto: 'allow' },
    },
  }

  test.each(Object.entries(table))('in each mode when %s', (_, { access, readOnly = false, effects }) => {
    const judged = permissionModes.map((mode) => [mode, effect(access, policyWith({ mode }), { readOnly })])
    // Without a sandbox, mode `sandboxed` is like `ask`.
    expect(Object.fromEntries(judged)).toEqual({ ...effects, sandboxed: effects.ask })
  })
})

describe('a folder that is searched', () => {
  test('needs a request if secrets are below it', () => {
    const places = ['/', home, '/home', '/etc', '/proc', `${home}/.config`, '/repo/.ssh']
    expect(places.map((place) => effect(read(place, true), policyWith()))).toEqual(places.map(() => 'ask'))
  })

  test('is read freely if it has only ordinary files', () => {
    expect(effect(read('/repo', true), policyWith())).toBe('allow')
    expect(effect(read(`${home}/projects/x`, true), policyWith())).toBe('allow')
  })

  test('may be listed without a search', () => {
    expect(effect(read(home), policyWith())).toBe('allow')
    expect(effect(command('ls ~'), policyWith())).toBe('allow')
    expect(effect(command('grep -r key ~'), policyWith())).toBe('ask')
    expect(effect(command('rg key /etc'), policyWith())).toBe('ask')
  })

  test('needs a request if a rule denies something below it, and is denied if the rule covers all of it', () => {
    const policy = policyWith({ user: [{ effect: 'deny', type: 'read', match: './private' }] })
    expect(effect(read('/repo', true), policy)).toBe('ask')
    expect(effect(read('/repo'), policy)).toBe('allow')
    expect(effect(read('/repo/private', true), policy)).toBe('deny')
    expect(effect(read('/repo/src', true), policy)).toBe('allow')
    expect(effect(command('grep -r key .'), policy)).toBe('ask')
  })

  test('is not granted by a rule, because its folder may have links that lead elsewhere', () => {
    const policy = policyWith({ user: [{ effect: 'allow', type: 'read', match: '~' }] })
    expect(effect(read(`${home}/.ssh/config`), policy)).toBe('allow')
    expect(effect(read(home, true), policy)).toBe('ask')
  })

  test('is followed through a link to secrets', async () => {
    await using folder = await TestFolder.make()
    await symlink('/etc', folder.at('link'))
    expect(effect(read(folder.at('link'), true), policyWith())).toBe('ask')
  })
})

test('a link to a file that does not exist yet is checked by its target', async () => {
  await using folder = await TestFolder.make({ 'in/a.txt': '' })
  await symlink(folder.at('out/new.txt'), folder.at('in/link'))
  const policy = policyWith({ mode: 'accept-edits', cwd: folder.at('in') })
  expect(effect(write(folder.at('in/new.txt')), policy)).toBe('allow')
  expect(effect(write(folder.at('in/link')), policy)).toBe('ask')
})

test('mode accept-edits may write in additional folders', () => {
  const policy = policyWith({ mode: 'accept-edits', folders: ['/other'] })
  expect(effect(write('/other/a.ts'), policy)).toBe('allow')
  expect(effect(write('/other-evil/a.ts'), policy)).toBe('ask')
})

test('a call gets the strictest judgement of all its accesses', () => {
  const rules: Rule[] = [{ effect: 'deny', type: 'read', match: '/repo/private' }]
  expect(effect([...read('/repo/a'), ...write('/repo/b')], policyWith())).toBe('ask')
  expect(effect([...write('/repo/b'), ...read('/repo/private/c')], policyWith({ user: rules }))).toBe('deny')
})

test('a rule may forbid a built-in tool or ask before it, but never allows its accesses', () => {
  const ruled = (effect: Rule['effect']): Policy => policyWith({ user: [{ effect, type: 'tool', match: 'some_*' }] })
  expect(effect(read('/repo/a'), ruled('deny'))).toBe('deny')
  expect(effect(read('/repo/a'), ruled('ask'))).toBe('ask')
  expect(effect(write('/repo/a'), ruled('allow'))).toBe('ask')
})

test('plan mode denies a call even if a rule allows it', () => {
  const user: Rule[] = [
    { effect: 'allow', type: 'write', match: '/repo' },
    { effect: 'allow', type: 'command', match: 'npm test' },
    { effect: 'allow', type: 'tool', match: 'server__act' },
  ]
  const policy = policyWith({ mode: 'plan', user })
  expect([write('/repo/a'), command('npm test'), foreign].map((access) => effect(access, policy))).toEqual([
    'deny',
    'deny',
    'deny',
  ])
})

test('mode auto asks about a command that it cannot analyze if it might break a rule', () => {
  const user: Rule[] = [{ effect: 'deny', type: 'command', match: 'git push' }]
  const unreadable = [
    'eval "$x"',
    'bash -c "$x"',
    'cat script | sh',
    'timeout 5 "$x" push',
    '$x push',
    'f() { "$@"; }; f x',
  ]
  for (const text of unreadable) {
    expect(effect(command(text), policyWith({ mode: 'auto', user })), text).toBe('ask')
    expect(effect(command(text), policyWith({ mode: 'auto' })), text).toBe('allow')
  }
  expect(effect(command('npm test'), policyWith({ mode: 'auto', user }))).toBe('allow')
  const forbidden = [
    'npm test && git push',
    'eval git push',
    'bash -lc "git push"',
    'sudo git -C /x push',
    'x=$(git push)',
  ]
  for (const text of forbidden) expect(effect(command(text), policyWith({ mode: 'auto', user })), text).toBe('deny')
})

test('an invalid URL cannot be fetched without a request', () => {
  expect(effect([{ type: 'fetch', url: 'nowhere' }], policyWith({ mode: 'auto' }))).toBe('ask')
})
