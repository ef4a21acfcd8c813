import { expect, test } from 'vitest'
import { permissionText, spellInvisible } from './permission-text.ts'

const request = { requestId: 'r', tool: 'bash', options: [] }

test('a command of several lines is shown in full, with every reason below it', () => {
  const command = 'git fetch &&\nnpm ci'
  const title = `Run in /code: ${command}\n\`git\`: it does not only read.\n\`npm\`: it does not only read.`
  expect(permissionText({ ...request, title, input: { command } })).toEqual({
    what: `Run in /code: ${command}`,
    why: '`git`: it does not only read.\n`npm`: it does not only read.',
    input: [],
  })
})

test('arguments that are not part of the text are shown, too', () => {
  const title = 'Write x.ts\nIt changes a file.'
  const input = { path: 'x.ts', content: 'a', empty: '', lines: [1], none: undefined }
  expect(permissionText({ ...request, title, input })).toEqual({
    what: 'Write x.ts',
    why: 'It changes a file.',
    input: [
      { name: 'content', text: 'a' },
      { name: 'lines', text: '[\n  1\n]' },
    ],
  })
})

test('a file that is read and written is one action, and the reason follows it', () => {
  const title = 'Read /code/x.ts\nWrite /code/x.ts\nIt writes x.ts.'
  expect(permissionText({ ...request, title, input: { path: 'x.ts' } })).toEqual({
    what: 'Read /code/x.ts\nWrite /code/x.ts',
    why: 'It writes x.ts.',
    input: [],
  })
})

test('without a title the tool is named, and one line is the whole text', () => {
  expect(permissionText({ ...request, title: '' }).what).toBe('bash')
  expect(permissionText({ ...request, title: 'Fetch a page' })).toEqual({ what: 'Fetch a page', why: '', input: [] })
})

test('control characters, invisible letters and unusual spaces are spelled out', () => {
  expect(spellInvisible('a\u202eb\u200bc\u00a0d\u001be\u{e0041} f\n\tg')).toBe(
    'a\\u{202e}b\\u{200b}c\\u{a0}d\\u{1b}e\\u{e0041} f\n\tg',
  )
})
