import { expect, test } from 'vitest'
import { changeOf } from './requested-change.ts'

const title = 'Write /repo/a.ts\nIt writes /repo/a.ts.'

test('a request to edit names replaceAll and spells out invisible letters', () => {
  const input = { path: 'a.ts', oldText: 'allow()\n', newText: 'deny\u202e()\u200b\n', replaceAll: true }
  const { files = [], others } = changeOf({ tool: 'edit', title, input }) ?? {}
  const lines = files.flatMap(({ hunks }) => hunks.flatMap((hunk) => hunk.lines))
  expect(lines.map(({ text }) => text)).toEqual(['allow()', 'deny\\u{202e}()\\u{200b}'])
  expect(others).toEqual([{ name: 'replaceAll', text: 'true' }])
})

test('only a request to change a file has a change', () => {
  expect(changeOf({ tool: 'bash', title: 'Run in /repo: ls', input: { command: 'ls' } })).toBeUndefined()
})
