import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say, shownTo } from '../peers/answers.ts'
import { expectScreen, openChat, send, testHome } from './chat.ts'

test('/undo takes back a message with the files that a command changed, and /redo brings them again', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const file = join(home.cwd, 'a.txt')
  await writeFile(file, 'one\n')
  home.provider.script(
    call({ id: 'call_1', name: 'bash', input: { command: 'echo two >> a.txt; echo new > b.txt' } }),
    say('I added a line.'),
  )
  const chat = await openChat({ home })
  send(chat, 'Add a line')
  await chat.waitFor('I added a line.')
  await chat.waitFor('Enter sends')
  send(chat, '/undo')
  await chat.waitFor('2 files would go back: a.txt, b.txt (is deleted)')
  await expectScreen(chat, 'undo', home)
  chat.press('enter')
  await chat.waitFor('/redo takes it back.')
  expect(await readFile(file, 'utf8')).toBe('one\n')
  expect(chat.screen()).not.toContain('I added a line.')
  // Its message is in the composer.
  expect(chat.screen()).toContain('Add a line')
  chat.press('ctrl-c')
  send(chat, '/redo')
  await chat.waitFor('I added a line.')
  await chat.waitFor('Put back 2 files')
  expect(await readFile(file, 'utf8')).toBe('one\ntwo\n')
  send(chat, '/undo')
  await chat.waitFor('2 files would go back')
  chat.press('enter')
  await chat.waitFor('/redo takes it back.')
  home.provider.script(say('Another way.'))
  chat.type(' of text')
  chat.press('enter')
  await chat.waitFor('Another way.')
  expect(shownTo(await home.provider.request(3))).toEqual(['user: Add a line of text'])
})
