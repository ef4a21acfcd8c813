import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { say, shownTo } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'

test('text that was not sent is there again after kill -9', async () => {
  const home = await testHome()
  const chat = await openChat({ home })
  chat.type('half a thought')
  await chat.waitFor(' half a thought')
  const drafts = async (): Promise<string[]> =>
    (await readdir(home.env['TAPETREE_HOME'] ?? '', { recursive: true })).filter((name) =>
      /drafts.\d+\.json$/.test(name),
    )
  await expect.poll(drafts, { timeout: 20_000 }).toHaveLength(1)
  chat.kill()
  await chat.exit
  const next = await openChat({ home, until: ' half a thought' })
  await next.waitFor('model-1')
  home.provider.script(say('Whole.'))
  send(next, ', and the rest')
  await next.waitFor('Whole.')
  expect(shownTo(await home.provider.request(1)).join('\n')).toContain('half a thought, and the rest')
})

test('Esc twice brings the last message back into the composer, on a new branch', async () => {
  const home = await testHome()
  home.provider.script(say('An answer.'), say('Another answer.'))
  const chat = await openChat({ home })
  send(chat, 'a question')
  await chat.waitFor('An answer.')
  await chat.waitFor('Enter sends')
  chat.press('escape')
  await chat.waitFor('Press Esc again to edit your last message.')
  chat.press('escape')
  await chat.waitFor(
    (rows) => rows.some((row) => row.startsWith(' a question')) && !rows.join('').includes('An answer.'),
  )
  send(chat, ', changed')
  await chat.waitFor('Another answer.')
  const asked = shownTo(await home.provider.request(2)).filter((line) => line.startsWith('user:'))
  expect(asked).toEqual(['user: a question, changed'])
})
