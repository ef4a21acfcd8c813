import { expect, test } from 'vitest'
import { checkSettings } from './check-settings.ts'

test('an unknown name is reported with the nearest name, and the other settings apply', () => {
  expect(
    checkSettings({ modle: 'a/b', permissions: { mdoe: 'auto', mode: 'plan' }, smallModel: 'a/c', zzz: 1 }),
  ).toEqual({
    settings: { permissions: { mode: 'plan' }, smallModel: 'a/c' },
    faults: [
      { path: ['permissions', 'mdoe'], message: 'There is no setting with this name. Did you mean mode?' },
      { path: ['modle'], message: 'There is no setting with this name. Did you mean model?' },
      { path: ['zzz'], message: 'There is no setting with this name.' },
    ],
  })
})

test('a wrong value is ignored and the valid ones beside it are kept', () => {
  const { settings, faults } = checkSettings({
    model: 5,
    retry: { maxRetries: 'x', jitter: 0.5 },
    modelCycle: ['a/b', 'c'],
  })
  expect(settings).toEqual({ retry: { jitter: 0.5 }, modelCycle: ['a/b'] })
  expect(faults.map(({ path }) => path)).toEqual([['model'], ['modelCycle', 1], ['retry', 'maxRetries']])
})

test('rules are written as text or as words, and an invalid rule is named', () => {
  const written = [
    'command git push',
    { type: 'command', match: ['git', 'commit', '-m', 'a b'] },
    'read src',
    'nonsense',
  ]
  expect(checkSettings({ permissions: { deny: written } })).toEqual({
    settings: {
      permissions: {
        deny: [
          { effect: 'deny', type: 'command', match: 'git push' },
          { effect: 'deny', type: 'command', match: ['git', 'commit', '-m', 'a b'] },
        ],
      },
    },
    faults: [2, 3].map((index) => ({
      path: ['permissions', 'deny', index],
      message: 'This is not a rule. A rule is "command …", "read …", "write …", "fetch …" or "tool …".',
    })),
  })
})

test('a server is recognized by its command or its URL, and an invalid one is ignored as a whole', () => {
  const { settings, faults } = checkSettings({
    mcpServers: {
      one: { command: 'serve', args: ['-p'], env: ['TOKEN'] },
      two: { url: 'https://example.com/mcp' },
      bad: { command: 'serve', args: 5 },
      no__name: { command: 'serve' },
    },
  })
  expect(settings.mcpServers).toEqual({
    one: { type: 'stdio', command: 'serve', args: ['-p'], env: { pass: ['TOKEN'], set: {} } },
    two: { type: 'http', url: 'https://example.com/mcp', headers: {} },
  })
  expect(faults.map(({ path }) => path.slice(0, 2))).toEqual([
    ['mcpServers', 'bad'],
    ['mcpServers', 'no__name'],
  ])
})

test('a file with nothing but mistakes sets nothing, and the check ends', () => {
  const many = { modelCycle: Array.from({ length: 500 }, () => 'x') }
  const { settings, faults } = checkSettings(many)
  expect([settings, faults.at(-1)]).toEqual([
    {},
    { path: [], message: 'There are too many mistakes. The whole file is ignored.' },
  ])
  expect(checkSettings([1]).faults).toEqual([
    { path: [], message: 'Settings must be an object with names and values.' },
  ])
})
