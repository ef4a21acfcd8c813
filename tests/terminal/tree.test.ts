import { expect, test } from 'vitest'
import { call, say, shownTo } from '../peers/answers.ts'
import { expectScreen, openChat, send, testHome } from './chat.ts'
import type { Terminal } from './terminal.ts'

/** Two questions and their answers. */
async function twoQuestions(): Promise<{ home: Awaited<ReturnType<typeof testHome>>; chat: Terminal }> {
  const home = await testHome()
  home.provider.script(say('Answer one.'), say('Answer two.'))
  const chat = await openChat({ home, rows: 40 })
  for (const [question, answer] of [
    ['Question one', 'Answer one.'],
    ['Question two', 'Answer two.'],
  ] as const) {
    send(chat, question)
    await chat.waitFor(answer)
    await chat.waitFor('Enter sends')
  }
  return { home, chat }
}

async function openTree(chat: Terminal): Promise<void> {
  chat.press('ctrl-t')
  await chat.waitFor('Enter go there')
}

/** Opens the tree with this entry selected. */
async function selectInTree(chat: Terminal, words: string): Promise<void> {
  await openTree(chat)
  chat.type(`/${words}`)
  await chat.waitFor(`“${words}”, 1`)
  chat.press('enter')
  await chat.waitFor('Enter go there')
}

test('the tree goes back to an earlier place, shows branches and labels, and searches', async () => {
  const { home, chat } = await twoQuestions()
  await selectInTree(chat, 'Answer one')
  chat.type('l')
  await chat.waitFor('Label')
  send(chat, 'a good place')
  await chat.waitFor('a good place')
  chat.press('enter')
  await chat.waitFor((rows) => !rows.some((row) => row.includes('Enter go there')))
  await chat.waitFor((rows) => !rows.some((row) => row.includes('Answer two.')))
  home.provider.script(say('Another way.'))
  send(chat, 'Question three')
  await chat.waitFor('Another way.')
  await chat.waitFor('Enter sends')
  expect(shownTo(await home.provider.request(3))).toEqual([
    'user: Question one',
    'assistant: Answer one.',
    'user: Question three',
  ])
  await openTree(chat)
  await chat.waitFor('Question two')
  await expectScreen(chat, 'tree', home)
  chat.type('/two')
  await chat.waitFor('“two”')
})

test('what is left behind can be summarized', async () => {
  const { home, chat } = await twoQuestions()
  home.provider.script(say('There was a second question.'))
  await selectInTree(chat, 'Answer one')
  chat.type('s')
  await chat.waitFor('Summarize the branch you leave')
  chat.press('enter')
  await chat.waitFor('Summary of another branch')
  chat.press('ctrl-o')
  await chat.waitFor('There was a second question.')
  home.provider.script(say('Going on.'))
  send(chat, 'Question three')
  await chat.waitFor('Going on.')
  expect(shownTo(await home.provider.request(4)).join('\n')).toContain('There was a second question.')
})

test('a compaction and a subagent have rows of their own in the tree', async () => {
  const home = await testHome()
  const task = { description: 'count the files', prompt: 'Count the files here.' }
  home.provider.script(
    call({ id: 'task-1', name: 'task', input: task }),
    say('There are none.'),
    say(`${'Many words.\n\n'.repeat(4000)}The helper found none.`),
    say('You are welcome.'),
    say('A helper was sent and found no files.'),
  )
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Send somebody to count')
  await chat.waitFor('The helper found none.')
  await chat.waitFor('Enter sends')
  send(chat, '/compact')
  await chat.waitFor('too little to summarize')
  send(chat, 'Thank you very much')
  await chat.waitFor('You are welcome.')
  await chat.waitFor('Enter sends')
  send(chat, '/compact')
  await chat.waitFor('summarized')
  await openTree(chat)
  await chat.waitFor(/⤷ count the files +done/)
  await chat.waitFor(/compaction: A helper was sent/)
})
