import { expect, test } from 'vitest'
import { say } from '../peers/answers.ts'
import { expectScreen, openChat, send, testHome } from './chat.ts'
import { startTmux } from './tmux.ts'

test('each theme has colours of its own, and NO_COLOR none', async () => {
  const home = await testHome()
  home.provider.script(() => say('**Strong** words and `code`.'))
  const dressed = new Map<string, string>()
  for (const [name, options] of Object.entries({
    dark: { args: ['--theme', 'dark'] },
    light: { args: ['--theme', 'light'] },
    'high-contrast': { args: ['--theme', 'high-contrast'] },
    none: { env: { NO_COLOR: '1' } },
  })) {
    const chat = await openChat({ home, ...options })
    send(chat, 'Go')
    await chat.waitFor('words and')
    const colours = chat
      .cells()
      .flatMap((row) => row.map(({ foreground, background }) => `${foreground}/${background}`))
    dressed.set(name, [...new Set(colours)].toSorted().join(' '))
    chat.press('ctrl-c', 'ctrl-c')
    await chat.exit
  }
  expect(new Set(dressed.values()).size).toBe(4)
  expect(dressed.get('none')).toBe('undefined/undefined')
})

test('for a screen reader nothing is redrawn: lines are only added', async () => {
  const home = await testHome()
  home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['Read ', 'aloud.'] }] })
  const chat = await openChat({ home, args: ['--screen-reader'], until: /\S/ })
  send(chat, 'Speak')
  await chat.waitFor(/Agent: Read aloud\./)
  // No cursor movement, no clearing, no other screen.
  // oxlint-disable-next-line no-control-regex
  expect(chat.bytes.toString()).not.toMatch(/\u001b\[(?:\d*(?:;\d*)?[ABCDGHJ]|\?1049h|2K)/)
})

test('the screen follows the size of the terminal', async () => {
  const home = await testHome()
  home.provider.script(say('A sentence that is longer than forty columns and so has to be broken.'))
  const chat = await openChat({ home, columns: 100, rows: 30 })
  send(chat, 'Go')
  await chat.waitFor('has to be broken.')
  await chat.waitFor('% of context')
  // The longest date fits.
  chat.resize(43, 20)
  await chat.waitFor(
    (rows) =>
      rows.length === 20 &&
      rows.some((row) => row.includes('A sentence')) &&
      !rows.some((row) => row.includes('A sentence that is longer than forty columns and')),
  )
  await chat.waitFor('be broken.')
  await expectScreen(chat, 'narrow', home)
})

test('in tmux it looks and works the same', async () => {
  const home = await testHome()
  home.provider.script(say('Seen in tmux: 漢字 🙂.'))
  await using tmux = await startTmux({ home })
  await tmux.waitFor('Enter sends')
  await tmux.type('Hello')
  await tmux.press('enter')
  await tmux.waitFor('Seen in tmux: 漢字 🙂.')
  await tmux.resize(60, 20)
  await tmux.waitFor('Seen in tmux')
})
