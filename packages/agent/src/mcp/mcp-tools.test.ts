import { expect, test } from 'vitest'
import { judgeCall } from '../permissions/judge-call.ts'
import { noRules, type Rule } from '../permissions/rules.ts'
import type { CheckedCall } from '../tools/tool.ts'
import { defaultMcpLimits } from './limits.ts'
import { mcpTools, toolNames } from './mcp-tools.ts'
import { readTools } from './remote-tool.ts'

test('tool names have the prefix of their server, are valid for every provider, and are unique', () => {
  const long = 'x'.repeat(80)
  const names = toolNames(
    'web',
    ['get', 'a.b', 'a_b', 'a/b', long, `${long}y`].map((name) => ({ name })),
  )
  expect(names.slice(0, 3)).toEqual([
    'mcp__web__get',
    expect.stringMatching(/^mcp__web__a_b_[0-9a-f]{8}$/),
    'mcp__web__a_b',
  ])
  expect(new Set(names).size).toBe(6)
  for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
})

test('the name of a tool does not depend on the order in which its server lists it', () => {
  const listed = ['get.info', 'get info', 'x.y'].map((name) => ({ name }))
  const names = toolNames('web', listed)
  expect(toolNames('web', listed.toReversed()).toReversed()).toEqual(names)
  expect(names.slice(0, 2)).not.toContain('mcp__web__get_info')
  expect(names[2]).toBe('mcp__web__x_y')
})

test('the gate asks before a tool is used, whatever its server claims, unless a rule names the server', () => {
  const listed = [{ name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }]
  const { tools } = readTools(listed, defaultMcpLimits)
  const options = { server: 'web', limits: defaultMcpLimits, call: () => Promise.reject(new Error('not called')) }
  const [tool] = mcpTools(tools, options)
  if (!tool) throw new Error('There is no tool.')
  const { access } = tool.check({}, { cwd: '/' }) as CheckedCall
  const judged = (...rules: Rule[]): string =>
    judgeCall({ tool: tool.name, readOnly: tool.readOnly, access }, {
      mode: 'ask',
      cwd: '/',
      home: '/',
      rules: { ...noRules, user: rules },
    } as never).effect
  expect(judged()).toBe('ask')
  expect(judged({ effect: 'allow', type: 'tool', match: 'mcp__web__*' })).toBe('allow')
  expect(judged({ effect: 'allow', type: 'tool', match: 'mcp__we__*' })).toBe('ask')
})
