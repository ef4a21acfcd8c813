import { expect, test } from 'vitest'
import { keys, pasted, startChat } from '../testing/chat-driver.ts'

test('vim keys work on the text, with counts and undo, and /vim turns them off', async () => {
  await using chat = startChat({ look: { vim: true } })
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('one two three four')
  terminal.press(keys.escape)
  await terminal.waitFor('NORMAL')
  terminal.type('0d2w')
  await terminal.waitFor((screen) => screen.includes(' three four') && !screen.includes('two'))
  terminal.press('u')
  await terminal.waitFor('one two three four')
  terminal.type('A!')
  await terminal.waitFor((screen) => screen.includes('one two three four!') && !screen.includes('NORMAL'))
  // Escape followed at once by a key.
  terminal.press('\u001b0')
  terminal.type('x')
  await terminal.waitFor(' ne two three four!')
  terminal.press('\u0003')
  await terminal.waitFor('Up restores it')
  terminal.type('i/vim')
  terminal.press(keys.enter)
  await terminal.waitFor('Vim keys are off.')
})

test('pasted text cannot reach the terminal as an escape sequence', async () => {
  await using chat = startChat()
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(pasted('safe\u009b2J and \u001b[31mred'))
  await terminal.waitFor('and red')
  expect(terminal.written).not.toMatch(/\u009b|\u001b\[31m/)
})

test('Up and Down move through sent messages, and return to the draft', async () => {
  await using chat = startChat()
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  for (const text of ['first', 'second']) {
    terminal.type(text)
    terminal.press(keys.enter)
  }
  terminal.type('draft')
  terminal.press('\u0001')
  terminal.press(keys.up)
  await terminal.waitFor(' second')
  terminal.press(keys.up)
  await terminal.waitFor(' first')
  terminal.press(keys.down)
  terminal.press(keys.down)
  await terminal.waitFor(' draft')
})
