import { expect, test } from 'vitest'
import { missingExports } from './missing-exports.ts'

const symbol = { packageName: '@tapetree/agent', packagePath: 'src/run.ts', qualifiedName: 'Hidden' }
const project = (type: unknown): unknown => ({
  kind: 1,
  name: 'API',
  children: [{ kind: 2, name: '@tapetree/agent', children: [{ kind: 64, name: 'run', type }] }],
})

test('a type of ours that has no page is reported once, with its user', () => {
  const hidden = { type: 'reference', name: 'Hidden', target: symbol }
  expect(missingExports(project({ type: 'union', types: [hidden, hidden] }))).toEqual([
    'Hidden of @tapetree/agent/src/run.ts is used by @tapetree/agent.run but not exported',
  ])
})

test('exported types, type parameters, types of others, base types and values behind typeof are not reported', () => {
  const types = [
    { type: 'reference', name: 'Shown', target: 12 },
    { type: 'reference', name: 'Item', target: symbol, refersToTypeParameter: true },
    { type: 'reference', name: 'ZodType', target: { packageName: 'zod', qualifiedName: 'ZodType' } },
    { type: 'query', queryType: { type: 'reference', name: 'schema', target: symbol } },
  ]
  expect(missingExports(project({ type: 'union', types }))).toEqual([])
  const base = { type: 'reference', name: 'Base', target: symbol }
  expect(missingExports({ kind: 256, name: 'Options', extendedTypes: [base] })).toEqual([])
})
