import { expect, test } from 'vitest'
import { say, sayAndWait, shownTo } from '../peers/answers.ts'
import { expectScreen, openChat, send, testHome } from './chat.ts'

test('queued messages can be edited, moved, held and removed, and go out as they then are', async () => {
  const home = await testHome()
  home.provider.script(sayAndWait(['Busy ', 'now'], 'go', ['.']))
  home.provider.script(() => say('Next.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Begin')
  await chat.waitFor('Busy')
  await chat.waitFor('Enter queues')
  for (const text of ['first', 'second', 'third', 'fourth']) send(chat, text)
  chat.press('ctrl-q')
  await chat.waitFor('4. fourth')
  await expectScreen(chat, 'queue', home)
  // The selected one is the first: it is edited, then moved behind the second.
  chat.press('enter')
  await chat.waitFor('Esc discard changes')
  send(chat, ', changed')
  await chat.waitFor('1. first, changed')
  chat.type('\u001b[1;2B')
  await chat.waitFor('2. first, changed')
  chat.press('down')
  chat.type('x')
  await chat.waitFor('3. fourth')
  chat.type('h')
  await chat.waitFor('held')
  chat.press('escape')
  await chat.waitFor('Enter queues')
  home.provider.release('go')
  const request = await home.provider.request(3)
  expect(shownTo(request).filter((line) => line.startsWith('user:'))).toEqual([
    'user: Begin',
    'user: second',
    'user: first, changed',
  ])
  await chat.waitFor('Enter sends')
  expect(home.provider.requests.length).toBe(3)
})

test('Alt-Enter steers: the message goes into the run that goes on', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  home.provider.script(
    {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['Working'] },
        { type: 'wait', gate: 'go' },
        { type: 'tool_call', id: 'call_1', name: 'ls', chunks: ['{}'] },
      ],
    },
    say('Steered.'),
  )
  const chat = await openChat({ home })
  send(chat, 'Begin')
  await chat.waitFor('Enter queues')
  chat.type('Rather this way')
  chat.press('alt-enter')
  await chat.waitFor(
    (rows) =>
      rows.some((row) => /steer/i.test(row) && !row.includes('Alt-Enter')) ||
      rows.filter((row) => row.includes('Rather this way')).length > 0,
  )
  home.provider.release('go')
  await chat.waitFor('Steered.')
  expect(shownTo(await home.provider.request(2)).join('\n')).toContain('Rather this way')
})
