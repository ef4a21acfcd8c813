import { expect, test } from 'vitest'
import { expectScreen, openChat, send, testHome } from './chat.ts'
import type { Cell } from './screen.ts'

const markdown = [
  '# A heading\n\nSome **bold** words and `code`.\n\n',
  '- one\n- two\n\n```ts\nconst answer: number = 42 // why',
  '\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nThe end.',
]

/** The cells of the first row that has these words. */
function cellsOf(cells: readonly (readonly Cell[])[], words: string): readonly Cell[] {
  const row =
    cells.find((each) =>
      each
        .map(({ text }) => text || ' ')
        .join('')
        .includes(words),
    ) ?? []
  const start = row
    .map(({ text }) => text || ' ')
    .join('')
    .indexOf(words)
  return row.slice(start, start + words.length)
}

test('an answer is shown as Markdown while it comes in, with its code in colours', async () => {
  const home = await testHome()
  home.provider.script({
    type: 'answer',
    content: [
      { type: 'text', chunks: markdown.slice(0, 2) },
      { type: 'wait', gate: 'rest' },
      { type: 'text', chunks: markdown.slice(2) },
    ],
  })
  const chat = await openChat({ home })
  send(chat, 'Show me')
  await chat.waitFor('const answer')
  expect(chat.screen()).not.toContain('The end.')
  home.provider.release('rest')
  await chat.waitFor('The end.')
  await chat.waitFor('Enter sends')
  expect(cellsOf(chat.cells(), 'bold').every(({ bold }) => bold)).toBe(true)
  const [keyword, number] = [cellsOf(chat.cells(), 'const')[0], cellsOf(chat.cells(), '42')[0]]
  expect(keyword?.foreground).toBeDefined()
  expect(number?.foreground).not.toBe(keyword?.foreground)
  await expectScreen(chat, 'markdown', home)
})

test('reasoning is folded to a line, and Ctrl-O unfolds it', async () => {
  const home = await testHome()
  home.provider.script({
    type: 'answer',
    content: [
      { type: 'reasoning', chunks: ['First this.\n\nThen that.\n\nA secret thought.'] },
      { type: 'text', chunks: ['Well considered.'] },
    ],
  })
  const chat = await openChat({ home })
  send(chat, 'Think')
  await chat.waitFor('Well considered.')
  expect(chat.screen()).not.toContain('A secret thought.')
  chat.press('ctrl-o')
  await chat.waitFor('A secret thought.')
})

test('the footer tells model, context in per cent and cost', async () => {
  const home = await testHome()
  home.provider.script({
    type: 'answer',
    content: [{ type: 'text', chunks: ['Done.'] }],
    usage: { input: 40_000, output: 10_000 },
  })
  const chat = await openChat({ home, columns: 120 })
  send(chat, 'Go')
  await chat.waitFor('Done.')
  // 40,000 at one dollar a million and 10,000 at five.
  await chat.waitFor('$0.09')
  await chat.waitFor(/\b(?:40|50)% of context/)
  expect(chat.screen()).toContain('model-1')
})
