import { expect, test } from 'vitest'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'
import { runCommand } from './command.ts'

test('-c opens the last conversation: not a new session in which nothing was said, which is gone from the list', async () => {
  const home = await testHome()
  home.provider.script(say('It is a bird.'))
  const chat = await openChat({ home })
  send(chat, 'What is a wren?')
  await chat.waitFor('It is a bird.')
  send(chat, '/new')
  await chat.waitFor((rows) => !rows.some((row) => row.includes('It is a bird.')))
  chat.press('ctrl-c', 'ctrl-c')
  expect(await chat.exit).toBe(0)
  const { stdout } = await runCommand({ home, args: ['sessions', 'list', '--json'] })
  expect((JSON.parse(stdout) as { sessions: unknown[] }).sessions).toMatchObject([{ first_text: 'What is a wren?' }])
  const again = await openChat({ home, args: ['-c'] })
  await again.waitFor('It is a bird.')
})

test('after a crash -c opens the conversation of the person, and lists mark the session of its subagent', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const task = { description: 'count the trees', prompt: 'Count all of them.' }
  home.provider.script(call({ id: 'c', name: 'task', input: task }), sayAndWait(['One, two '], 'never', []))
  const chat = await openChat({ home })
  send(chat, 'How many trees are there?')
  await chat.waitFor('count the trees')
  await home.provider.request(2)
  chat.kill('SIGKILL')
  await chat.exit
  const listed = await runCommand({ home, args: ['sessions', 'list'] })
  expect(listed.stdout).toContain('subagent: count the trees')
  const picker = await openChat({ home, args: ['-r'], until: 'How many trees are there?' })
  await picker.waitFor('subagent: count the trees')
  picker.press('ctrl-c', 'ctrl-c')
  await picker.exit
  home.provider.script(say('Three.'), say('There are three trees.'))
  const again = await openChat({ home, args: ['-c'], until: 'How many trees are there?' })
  await again.waitFor('A run was interrupted')
  again.press('enter')
  await again.waitFor('There are three trees.')
})

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
