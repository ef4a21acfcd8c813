import { randomFrom } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { checkSettings } from './check-settings.ts'
import { readSettingsText } from './settings-text.ts'

const seed = Math.floor(Math.random() * 2 ** 32)

const sample = JSON.stringify({
  model: 'a/b',
  permissions: { mode: 'plan', deny: ['command rm', { type: 'command', match: ['a b'] }] },
  mcpServers: { docs: { command: 'npx', args: ['-y', 'x'], env: ['A'] } },
  hooks: { toolCall: [{ command: 'x', timeoutMs: 5 }] },
  retry: { maxRetries: 2, jitter: 0.5 },
})
const pieces = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ':',
  ',',
  '\n',
  '  ',
  '- ',
  '&a ',
  '*a',
  '!!map ',
  'null',
  '1e999',
  '\\u0000',
  '__proto__',
  '\t',
  '#',
  '|',
]

test(`a settings file with any change is read or reported, and JSON follows the standard (seed ${seed})`, () => {
  const random = randomFrom(seed)
  const below = (limit: number): number => Math.floor(random() * limit)
  for (let count = 0; count < 400; count++) {
    let text = sample
    for (let changes = 1 + below(3); changes > 0; changes--) {
      const at = below(text.length)
      text = text.slice(0, at) + (pieces[below(pieces.length)] ?? '') + text.slice(at + below(4))
    }
    const bytes = new TextEncoder().encode(text)
    for (const format of ['json', 'yaml'] as const) {
      const result = readSettingsText(bytes, format)
      if (result.type === 'read') expect(() => checkSettings(result.written.value), text).not.toThrow()
      else expect(result.message, text).toMatch(/\.$/)
      if (format === 'json' && result.type === 'read') expect(result.written.value, text).toEqual(JSON.parse(text))
      if (format === 'json' && !isJson(text))
        expect(result, text).toMatchObject({ type: 'malformed', line: expect.any(Number) })
    }
  }
})

test(`checked settings are valid, whatever the input (seed ${seed})`, () => {
  const random = randomFrom(seed)
  const names = [
    'model',
    'permissions',
    'mode',
    'deny',
    'limits',
    'run',
    'turns',
    'mcpServers',
    'a',
    'command',
    'hooks',
    'toolCall',
    'x',
  ]
  const value = (depth: number): unknown => {
    const kind = Math.floor(random() * (depth > 3 ? 4 : 7))
    if (kind < 4) return ['a/b', 5, null, 'plan'][kind]
    if (kind === 4) return Array.from({ length: Math.floor(random() * 4) }, () => value(depth + 1))
    const count = Math.floor(random() * 5)
    return Object.fromEntries(
      Array.from({ length: count }, () => [names[Math.floor(random() * names.length)], value(depth + 1)]),
    )
  }
  for (let count = 0; count < 400; count++) {
    const input = { permissions: value(1), mcpServers: value(1), hooks: value(1), limits: value(1), other: value(1) }
    const { settings, faults } = checkSettings(input)
    expect(
      faults.map(({ path }) => path.join('.')),
      JSON.stringify(input),
    ).toContain('other')
    const { permissions: _, ...rest } = settings
    expect(checkSettings(rest), JSON.stringify(input)).toEqual({ settings: rest, faults: [] })
  }
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
