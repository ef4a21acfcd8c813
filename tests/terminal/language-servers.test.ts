import { expect, test } from 'vitest'
import { call, say } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'
import { languageProject } from './language-project.ts'

test('what a language server finds is a row of the conversation, and its state is in the last line', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  await using project = await languageProject(home)
  const write = (id: string, content: string): ReturnType<typeof call> =>
    call({ id, name: 'write', input: { path: 'a.py', content } })
  home.provider.script(
    write('call_1', 'BAD one\nBAD two\n'),
    say('Done.'),
    say('I leave them.'),
    write('call_2', 'good\n'),
    say('Corrected.'),
  )
  const chat = await openChat({ home: { ...home, cwd: project.cwd }, columns: 140, rows: 40 })
  expect(chat.screen()).not.toContain('pyright')
  send(chat, 'Write it')
  await chat.waitFor('I leave them.')
  await chat.waitFor('· pyright 2 errors')
  expect(chat.screen()).toContain('▸ 2 errors in a.py')
  expect(chat.screen()).not.toContain('BAD one is bad')
  chat.press('ctrl-o')
  await chat.waitFor('a.py:1:1 error: BAD one is bad (test)')
  send(chat, 'Correct it')
  await chat.waitFor('Corrected.')
  await chat.waitFor('· pyright no errors')
})
