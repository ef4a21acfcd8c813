import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { expect, test } from 'vitest'
import { sessionsFolder } from '../peers/session-files.ts'
import { openChat, testHome } from './chat.ts'

const entries = 10_000

test('a conversation of 10,000 entries opens at its end and scrolls', async () => {
  const home = await testHome()
  const store = openFileStore({ folder: sessionsFolder(home) })
  const session = await store.create({ cwd: home.cwd })
  const all = Array.from({ length: entries }, (_, index) =>
    session.appendMessage(index % 2 === 0 ? 'user' : 'assistant', [text(`Entry ${index + 1} of many.`)]),
  )
  await Promise.all(all)
  await session.close()
  await store.close()
  const chat = await openChat({ home, args: ['-c'], until: `Entry ${entries} of many.` })
  await chat.waitFor('Enter sends')
  const begun = performance.now()
  const pages = 20
  for (let page = 0; page < pages; page++) {
    const before = chat.screen()
    chat.press('page-up')
    await chat.waitFor((rows) => `${rows.join('\n').trimEnd()}\n` !== before)
  }
  expect((performance.now() - begun) / pages).toBeLessThan(200)
  expect(chat.screen()).not.toContain(`Entry ${entries} of many.`)
  chat.press('end')
  await chat.waitFor(`Entry ${entries} of many.`)
})
