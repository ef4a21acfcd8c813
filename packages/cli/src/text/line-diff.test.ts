import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DiffFile } from '@tapetree/session/screen'
import { diffTexts } from './line-diff.ts'

test('a change has its line numbers, three lines around it and its changed words', () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index + 1}\n`).join('')
  const { hunks } = diffTexts({ name: 'a', before, after: before.replace('line 10\n', 'line ten\nnew\n') })
  const rows = hunks.flatMap(({ lines }) =>
    lines.map(({ type, text, oldLine, newLine }) => [type, text, oldLine, newLine]),
  )
  expect(rows).toEqual([
    ['context', 'line 7', 7, 7],
    ['context', 'line 8', 8, 8],
    ['context', 'line 9', 9, 9],
    ['removed', 'line 10', 10, undefined],
    ['added', 'line ten', undefined, 10],
    ['added', 'new', undefined, 11],
    ['context', 'line 11', 11, 12],
    ['context', 'line 12', 12, 13],
    ['context', 'line 13', 13, 14],
  ])
  expect(hunks[0]?.lines[4]?.marks).toEqual([{ start: 5, end: 8 }])
})

test('a new file and a missing line break at the end are shown', () => {
  expect(diffTexts({ name: 'a', before: undefined, after: 'one' })).toEqual({
    oldName: null,
    newName: 'a',
    hunks: [{ section: '', lines: [{ type: 'added', text: 'one', newLine: 1, isUnterminated: true }] }],
    notes: [],
  })
  const { hunks } = diffTexts({ name: 'a', before: 'one\n', after: 'one' })
  expect(hunks[0]?.lines.map(({ type }) => type)).toEqual(['removed', 'added'])
})

test('the diff of any two texts turns one into the other', () => {
  const line = fc.constantFrom('a', 'b', 'c', '', '-- x', '++ y', '@@ -1 +1 @@')
  const text = fc.tuple(fc.array(line, { maxLength: 30 }), fc.boolean()).map(([lines, isEnded]) => {
    const joined = lines.join('\n')
    return joined !== '' && isEnded ? `${joined}\n` : joined
  })
  fc.assert(
    fc.property(text, text, (before, after) => {
      const file = diffTexts({ name: 'a', before, after })
      expect(applied(before, file)).toBe(after)
    }),
    { numRuns: 500 },
  )
})

function applied(before: string, { hunks }: DiffFile): string {
  const old = before === '' ? [] : (before.endsWith('\n') ? before : `${before}\0\n`).slice(0, -1).split('\n')
  const lines: string[] = []
  let at = 0
  for (const { lines: changed } of hunks) {
    const start = (changed.find(({ oldLine }) => oldLine !== undefined)?.oldLine ?? old.length + 1) - 1
    const first = changed.every(({ type }) => type === 'added') ? (changed[0]?.newLine ?? 1) - 1 : start
    for (; at < Math.min(first, old.length); at++) lines.push(old[at] ?? '')
    for (const { type, text, isUnterminated } of changed) {
      if (type !== 'added') at++
      if (type !== 'removed') lines.push(isUnterminated ? `${text}\0` : text)
    }
  }
  for (; at < old.length; at++) lines.push(old[at] ?? '')
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`.replace(/\0\n$/, '')
}
