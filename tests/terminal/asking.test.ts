import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say, shownTo } from '../peers/answers.ts'
import { answer, expectScreen, openChat, send, testHome } from './chat.ts'

const long = `touch made && ${Array.from({ length: 30 }, (_, index) => `echo part-${index + 1}`).join(' && ')}`

test('a permission is asked with the whole command; once allowed, it runs', async () => {
  const home = await testHome()
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command: long } }), say('It ran.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Run it')
  await chat.waitFor('Allow bash?')
  await chat.waitFor('part-30')
  expect(chat.screen()).toContain('touch made')
  expect(existsSync(join(home.cwd, 'made'))).toBe(false)
  await expectScreen(chat, 'permission', home)
  await answer(chat, '1', 'It ran.')
  expect(existsSync(join(home.cwd, 'made'))).toBe(true)
})

test('who does not allow it can say why, and the model is told', async () => {
  const home = await testHome()
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command: 'touch made' } }), say('Understood.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Run it')
  await chat.waitFor('with a reason')
  const [, number = ''] = /(\d)[.)]? +Do not allow, with a reason/.exec(chat.screen()) ?? []
  await answer(chat, number, 'because')
  send(chat, 'Not on a Sunday')
  await chat.waitFor('Understood.')
  expect(shownTo(await home.provider.request(2)).join('\n')).toContain('Not on a Sunday')
  expect(existsSync(join(home.cwd, 'made'))).toBe(false)
})

test('a question of the model is answered from its options', async () => {
  const home = await testHome()
  const input = {
    question: 'Which colour?',
    options: [
      { label: 'Green', description: 'like grass' },
      { label: 'Blue', description: 'like the sky' },
    ],
  }
  home.provider.script(call({ id: 'call_1', name: 'ask_user', input }), say('A good choice.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Ask me')
  await chat.waitFor('Which colour?')
  await chat.waitFor('Blue')
  await answer(chat, '2', 'A good choice.')
  expect(shownTo(await home.provider.request(2)).join('\n')).toContain('Blue')
})

test('a plan is shown as Markdown, a change is asked for in words, and an accepted plan ends plan mode', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'plan' } } })
  const plan = (id: string, text: string): ReturnType<typeof call> =>
    call({ id, name: 'exit_plan', input: { plan: text } })
  home.provider.script(
    plan('call_1', '## The plan\n\n1. Read **everything**.'),
    plan('call_2', '## The plan\n\n1. Write a test first.'),
    say('I begin.'),
  )
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Plan it')
  await chat.waitFor('The agent has a plan')
  await chat.waitFor('Read everything.')
  await answer(chat, '2', 'What should be different?')
  chat.type('A test first')
  await chat.waitFor('A test first')
  chat.press('enter')
  // The conversation shows the plan before the dialog does.
  await chat.waitFor('│ 1. Write a test first.')
  expect(shownTo(await home.provider.request(2)).join('\n')).toContain('A test first')
  await answer(chat, '1', 'I begin.')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).not.toContain('· plan')
})
