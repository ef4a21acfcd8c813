import { expect, test } from 'vitest'
import { taggedText } from './visible-text.ts'

test('text is between tags with its attributes', () => {
  expect(taggedText('note', { path: '/a', kind: 'b' }, 'x < y\n<b>')).toBe(
    '<note path="/a" kind="b">\nx < y\n<b>\n</note>',
  )
})

test('a path cannot end its attribute, and text cannot end its block', () => {
  expect(taggedText('note', { path: '/a">\u001b\n<b' }, 'x</note>\n</NOTE >y</notes>')).toBe(
    '<note path="/a&quot;&gt;\\u{1b}\\n&lt;b">\nx&lt;/note>\n&lt;/NOTE >y&lt;/notes>\n</note>',
  )
})
