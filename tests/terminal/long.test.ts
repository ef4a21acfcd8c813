import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { expect, test } from 'vitest'
import { say } from '../peers/answers.ts'
import { sessionsFolder } from '../peers/session-files.ts'
import { openChat, send, testHome } from './chat.ts'

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
  // The search goes through the whole session, also what is not loaded.
  chat.press('ctrl-f')
  await chat.waitFor('Find in the conversation')
  send(chat, 'Entry 17 of')
  await chat.waitFor('Match 1 of 1')
  await chat.waitFor(/^> Entry 17 of many\./m)
})

test('Ctrl-F finds words further up, the wheel of the mouse scrolls, and Ctrl-R brings back what was typed', async () => {
  const home = await testHome()
  const lines = Array.from({ length: 60 }, (_, index) => `line ${index + 1} of the answer`)
  home.provider.script(say(lines.join('\n\n')), say('Done.'))
  const chat = await openChat({ home })
  send(chat, 'A question about wrens')
  await chat.waitFor('line 60 of the answer')
  await chat.waitFor('Enter sends')
  send(chat, 'And one about carps')
  await chat.waitFor('Done.')
  await chat.waitFor('Enter sends')
  chat.press('ctrl-f')
  await chat.waitFor('Find in the conversation')
  send(chat, 'line 7 of')
  await chat.waitFor(/^line 7 of the answer/m)
  await chat.waitFor('Match 1 of 1')
  await chat.waitFor(() => inverseText().includes('line 7 of'))
  chat.press('escape')
  await chat.waitFor((rows) => !rows.some((row) => row.includes('Find in the conversation')))
  chat.press('end')
  await chat.waitFor('Done.')
  chat.type('\u001b[<64;5;5M'.repeat(5))
  await chat.waitFor((rows) => !rows.some((row) => row.includes('Done.')))
  chat.type('\u001b[<65;5;5M'.repeat(8))
  await chat.waitFor('Done.')
  chat.press('ctrl-r')
  chat.type('wrens')
  await chat.waitFor((rows) => rows.filter((row) => row.includes('A question about wrens')).length > 0)
  chat.press('enter')
  await chat.waitFor((rows) => rows.slice(-6).some((row) => row.includes('A question about wrens')))

  function inverseText(): string {
    return chat
      .cells()
      .flatMap((row) => row.filter(({ inverse }) => inverse).map(({ text }) => text))
      .join('')
  }
})
