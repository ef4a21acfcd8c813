import fc from 'fast-check'
import { expect, test } from 'vitest'
import { joinSummary, splitSummary } from './summary-text.ts'

test('a summary has its history, the unfinished work under its own heading, and the files', () => {
  const files = { read: ['a.ts', 'b.ts'], changed: ['c.ts'] }
  expect(joinSummary({ history: '## Goal\nall of it', unfinished: 'half of it', files })).toBe(
    [
      '## Goal\nall of it',
      '## The request being worked on (only how it began; what was done last follows below)',
      'half of it',
      '<files-read>\na.ts\nb.ts\n</files-read>',
      '<files-changed>\nc.ts\n</files-changed>',
    ].join('\n\n'),
  )
})

test('a joined summary splits into the same parts', () => {
  const words = fc.stringMatching(/^([a-z#<>/-]{1,6}( |\n)?){0,5}$/).map((each) => each.trim())
  const paths = fc.uniqueArray(fc.stringMatching(/^[a-z/. ]{1,8}$/), { maxLength: 3 })
  const files = fc.record({ read: paths, changed: paths })
  fc.assert(
    fc.property(fc.record({ history: words, unfinished: words, files }), (parts) => {
      expect(splitSummary(joinSummary(parts))).toEqual(parts)
    }),
  )
})

test('a foreign summary is all history', () => {
  const foreign = 'Some text with <files-read> in it.'
  expect(splitSummary(foreign)).toEqual({ history: foreign, unfinished: '', files: { read: [], changed: [] } })
})
