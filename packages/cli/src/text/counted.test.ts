import { expect, test } from 'vitest'
import { costText, counted, tokenText } from './amounts.ts'

test('a cost is shown to the cent', () => {
  expect([0, 0.00042, 0.5, 12.345].map(costText)).toEqual(['$0', '< $0.01', '$0.50', '$12.35'])
})

test('a count is shown with its noun and a thousands separator', () => {
  expect([1, 2, 12_345].map((count) => counted(count, 'entry', 'entries'))).toEqual([
    '1 entry',
    '2 entries',
    '12,345 entries',
  ])
  expect([900, 128_000, 999_900, 1_048_576].map(tokenText)).toEqual(['900', '128k', '1M', '1M'])
})
