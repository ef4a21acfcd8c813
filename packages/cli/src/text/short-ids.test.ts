import { expect, test } from 'vitest'
import { shortIds } from './describe-entry.ts'

test('ids are shortened as far as they stay distinct', () => {
  const short = shortIds(['0123456789-a', '0123456789-b', '0999', '0123456789-a'])
  expect([...short.values()]).toEqual(['0123456789-a', '0123456789-b', '0999'])
  expect(shortIds(['0123456789-a']).get('0123456789-a')).toBe('01234567')
})
