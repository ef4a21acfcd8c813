import { expect, test } from 'vitest'
import { say } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'
import { runCommand } from './command.ts'

test('another session is found by its name or by what was said in it', async () => {
  const home = await testHome()
  home.provider.script(say('It is a bird.'), say('It is a fish.'))
  for (const prompt of ['What is a wren?', 'What is a carp?']) {
    expect((await runCommand({ home, args: ['run', prompt] })).code).toBe(0)
  }
  const chat = await openChat({ home, args: ['-r'], rows: 40, until: 'carp' })
  await chat.waitFor('wren')
  chat.type('bird')
  await chat.waitFor(
    (rows) =>
      rows.some((row) => row.includes('wren') || row.includes('It is a bird')) &&
      !rows.some((row) => row.includes('carp')),
  )
  chat.press('enter')
  await chat.waitFor('Enter sends')
  await chat.waitFor('It is a bird.')
})

test('models and thinking are chosen from a list', async () => {
  const home = await testHome()
  const chat = await openChat({ home, rows: 40 })
  chat.press('ctrl-p')
  await chat.waitFor(/model/i)
  chat.type('model-1')
  await chat.waitFor('fake/model-1')
  chat.press('escape')
  await chat.waitFor('Enter sends')
  send(chat, '/thinking high')
  await chat.waitFor(/high/)
})
