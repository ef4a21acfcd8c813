import { expect, test } from 'vitest'
import { defaultMcpLimits } from './limits.ts'
import { readTools } from './remote-tool.ts'

const object = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }

test('a tool is read with a visible description, and a schema for models', () => {
  const inputSchema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    ...object,
    properties: { a: { type: 'string', description: 'Say\u200b \x1b[31mit' } },
  }
  const { tools, problems } = read({ name: 'say', description: 'Says\u202e it.', inputSchema })
  expect(problems).toEqual([])
  expect(tools).toMatchObject([
    {
      name: 'say',
      description: 'Says it.',
      inputSchema: { type: 'object', properties: { a: { type: 'string', description: 'Say it' } }, required: ['a'] },
    },
  ])
  expect(tools[0]?.check({ a: 'b' })).toBe(undefined)
  expect(tools[0]?.check({})).toContain('required')
  expect(tools[0]?.inputSchema).not.toHaveProperty('$schema')
})

test.each<[string, object, string]>([
  ['no name', { inputSchema: object }, 'Tool 1 is left out: its description is malformed.'],
  ['no schema', { name: 'a' }, 'The tool a is left out: its description is malformed.'],
  ['a schema of a list', { name: 'a', inputSchema: { type: 'array' } }, 'its description is malformed.'],
  ['a hidden value', { name: 'a', inputSchema: { ...object, enum: ['x\u200b'] } }, 'invisible characters'],
  [
    'a hidden name',
    { name: 'a', inputSchema: { type: 'object', properties: { 'x\u202e': {} } } },
    'invisible characters',
  ],
  ['an unknown kind of schema', { name: 'a', inputSchema: { ...object, $schema: 'urn:x' } }, 'is invalid'],
  ['a large schema', { name: 'a', inputSchema: { ...object, x: 'y'.repeat(70_000) } }, 'more than 65536 bytes'],
  ['a deep schema', { name: 'a', inputSchema: { ...object, x: nested(100_000) } }, 'nested more than 32 deep'],
])('a tool with %s is left out, and the others are kept', (_, tool, problem) => {
  const { tools, problems } = read(tool, { name: 'good', inputSchema: object })
  expect(tools.map(({ name }) => name)).toEqual(['good'])
  expect(problems).toEqual([expect.stringContaining(problem)])
})

test('a second tool with the same name is left out, and so are tools beyond the limit', () => {
  const many = Array.from({ length: 130 }, (_, index) => ({ name: `t${index === 1 ? 0 : index}`, inputSchema: object }))
  const { tools, problems } = read(...many)
  expect(tools).toHaveLength(127)
  expect(problems).toEqual([
    'The tool t0 is left out: another tool has the same name.',
    'There are more than 128 tools; the others are left out.',
  ])
})

test('a long description is truncated', () => {
  const { tools } = read({ name: 'a', description: 'x'.repeat(5000), inputSchema: object })
  expect(tools[0]?.description).toBe(`${'x'.repeat(4096)}…`)
})

test('the hash covers the name, the description and the schema as received, in any order of members', () => {
  const hash = (tool: object): string | undefined => read(tool).tools[0]?.sha256
  const base = { name: 'a', description: 'b', inputSchema: { type: 'object', title: 'c' } }
  expect(hash({ inputSchema: { title: 'c', type: 'object' }, description: 'b', name: 'a' })).toBe(hash(base))
  const others = [
    { ...base, name: 'x' },
    { ...base, description: 'b\u200b' },
    { ...base, inputSchema: { type: 'object', title: 'x' } },
  ]
  expect(new Set([base, ...others].map(hash)).size).toBe(4)
})

test('a schema whose check would take forever is stopped', () => {
  const pattern = { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
  const { tools } = read({ name: 'a', inputSchema: pattern })
  expect(tools[0]?.check({ a: `${'a'.repeat(50)}!` })).toContain('could not be checked')
  expect(tools[0]?.check({ a: 'aaa' })).toBe(undefined)
})

function read(...tools: unknown[]) {
  return readTools(tools, defaultMcpLimits)
}

function nested(depth: number): unknown {
  let value: unknown = {}
  for (let level = 0; level < depth; level += 1) value = { not: value }
  return value
}
