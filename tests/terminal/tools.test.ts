import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say, shownTo } from '../peers/answers.ts'
import { expectScreen, openChat, send, testHome } from './chat.ts'

const auto = { permissions: { mode: 'auto' } }

test('a command shows what it prints while it runs, how long it has taken, and its exit code', async () => {
  const home = await testHome({ settings: auto })
  // It ends when the test lets it.
  const command = 'echo a first line; until [ -e go-on ]; do sleep 0.05; done; echo a last line; exit 3'
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command } }), say('I see.'))
  const chat = await openChat({ home })
  send(chat, 'Run it')
  await chat.waitFor('a first line')
  // Everything that takes longer than a second says how long.
  await chat.waitFor(/\b[1-9]\d* ?s\b/)
  await writeFile(join(home.cwd, 'go-on'), '')
  await chat.waitFor('I see.')
  expect(chat.screen()).toContain('a last line')
  expect(chat.screen()).toMatch(/exit code 3/i)
})

test('an edit is shown as a diff', async () => {
  const home = await testHome({ settings: auto })
  await writeFile(join(home.cwd, 'greeting.txt'), 'Hello\nworld\n')
  home.provider.script(
    call({ id: 'call_1', name: 'read', input: { path: 'greeting.txt' } }),
    call({ id: 'call_2', name: 'edit', input: { path: 'greeting.txt', oldText: 'world', newText: 'everybody' } }),
    say('Changed.'),
  )
  const chat = await openChat({ home })
  send(chat, 'Greet everybody')
  await chat.waitFor('Changed.')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toMatch(/- ?world/)
  expect(chat.screen()).toMatch(/\+ ?everybody/)
  await expectScreen(chat, 'diff', home)
})

test('`!` runs a command that the model is told of, and `!!` one that it is not', async () => {
  const home = await testHome()
  home.provider.script(say('I know.'))
  const chat = await openChat({ home })
  send(chat, '!echo for $((40 + 2)) eyes')
  await chat.waitFor('for 42 eyes')
  send(chat, '!!echo only for $((6 * 7)) others')
  await chat.waitFor('only for 42 others')
  send(chat, 'What was it?')
  await chat.waitFor('I know.')
  const shown = shownTo(await home.provider.request(1)).join('\n')
  expect(shown).toContain('for 42 eyes')
  expect(shown).not.toContain('only for 42 others')
})

test('a command that is stopped leaves no file half done, and its output stays', async () => {
  const home = await testHome({ settings: auto })
  const command = 'echo begun > begun; echo seen; sleep 60; echo ended > ended'
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command } }))
  const chat = await openChat({ home })
  send(chat, 'Wait')
  await chat.waitFor(/^\W*seen$/m)
  chat.press('ctrl-c')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toContain('seen')
  expect(await readFile(join(home.cwd, 'begun'), 'utf8')).toBe('begun\n')
  await expect(readFile(join(home.cwd, 'ended'))).rejects.toMatchObject({ code: 'ENOENT' })
})
