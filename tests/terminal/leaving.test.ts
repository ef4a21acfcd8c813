import { expect, test } from 'vitest'
import { logLines } from '../peers/session-files.ts'
import { say, sayAndWait } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'

test('Ctrl-C once stops the turn and keeps what was said, twice leaves; the terminal is as it was, and the session goes on', async () => {
  const home = await testHome()
  home.provider.script(sayAndWait(['Half an answer ', 'and '], 'never', []), say('A whole one.'))
  const chat = await openChat({ home })
  send(chat, 'Begin')
  await chat.waitFor('Half an answer')
  chat.press('ctrl-c')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toContain('Half an answer')
  chat.press('ctrl-c', 'ctrl-c')
  expect(await chat.exit).toBe(0)
  expect(chat.emulator.buffer.active.type).toBe('normal')
  expect(chat.emulator.modes).toMatchObject({ bracketedPasteMode: false, mouseTrackingMode: 'none' })
  expect(chat.history()).toContain('tapetree -c')
  expect((await logLines(home)).some((line) => line.includes('Half an answer'))).toBe(true)
  const again = await openChat({ home, args: ['-c'] })
  await again.waitFor('Half an answer')
  send(again, 'Go on')
  await again.waitFor('A whole one.')
})
