import { expect, test } from 'vitest'
import { inFrontOf } from './draft.ts'

test('a refused command keeps what was typed meanwhile', () => {
  expect(inFrontOf('typed meanwhile', '/model x')).toBe('/model x\ntyped meanwhile')
  expect(inFrontOf('', '/model x')).toBe('/model x')
})
