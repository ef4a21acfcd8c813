import { expect, test } from 'vitest'
import { themeFor } from '../theme.ts'
import { errorLines } from './error-lines.ts'

const plain = themeFor({ theme: 'dark', color: false })
const dark = themeFor({ theme: 'dark', color: true })

test('an error is one sentence; its status, its kind and what the provider said are dimmer', () => {
  const message = 'fake reports that the quota or the credit is exhausted (429): The credit of this account is used up.'
  expect(errorLines({ message, kind: 'quota' }, { theme: plain, width: 80 })).toEqual([
    '✗ fake reports that the quota or the credit is exhausted. (429, quota)',
    '  The credit of this account is used up.',
  ])
  const [first, second] = errorLines({ message, kind: 'quota' }, { theme: dark, width: 80 })
  expect(first).toContain(dark.error('fake reports that the quota or the credit is exhausted.'))
  expect(first).toContain(dark.muted(' (429, quota)'))
  expect(second).toBe(`  ${dark.muted('The credit of this account is used up.')}`)
})

test('a message that is no such sentence is shown whole', () => {
  const lines = (message: string, kind?: string): string[] => errorLines({ message, kind }, { theme: plain, width: 40 })
  expect(lines('No.', 'refused')).toEqual(['✗ No. (refused)'])
  expect(lines('POST https://x/y failed')).toEqual(['✗ POST https://x/y failed'])
  expect(lines('One\ntwo: three', 'unknown')).toEqual(['✗ One', '  two: three (unknown)'])
  expect(
    lines(`${'long '.repeat(30)}: end`)
      .join(' ')
      .match(/long/g),
  ).toHaveLength(30)
})
