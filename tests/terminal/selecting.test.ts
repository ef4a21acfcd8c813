import { expect, test } from 'vitest'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'
import { runCommand, startCommand } from './command.ts'
import type { Terminal } from './terminal.ts'

/** Where the text is on the screen, in cells. */
function placeOf(chat: Terminal, text: string): { x: number; y: number } {
  const y = chat.rows().findIndex((row) => row.includes(text))
  expect(y).toBeGreaterThanOrEqual(0)
  return { x: chat.rows()[y]?.indexOf(text) ?? 0, y }
}

function mouse(chat: Terminal, what: 'press' | 'drag' | 'release', { x, y }: { x: number; y: number }): void {
  chat.type(`\u001b[<${what === 'drag' ? 32 : 0};${x + 1};${y + 1}${what === 'release' ? 'm' : 'M'}`)
}

/** What was sent to the clipboard of the terminal last. */
function copied(chat: Terminal): string | undefined {
  const sent = [...chat.bytes.toString('latin1').matchAll(/\u001b\]52;c;([^\u0007]*)\u0007/g)].at(-1)?.[1]
  return sent === undefined ? undefined : Buffer.from(sent, 'base64').toString()
}

/** The text in reversed colors, row by row. */
function marked(chat: Terminal): string {
  return chat
    .cells()
    .map((row) => row.flatMap(({ inverse, text }) => (inverse ? [text === '' ? ' ' : text] : [])).join(''))
    .filter((row) => row !== '' && !row.includes('Copied'))
    .join(' ')
}

const long = 'A paragraph that is so long that a terminal of sixty columns must wrap it, more than once in fact.'

test('a selection stays with its text while more text comes, and is copied without the breaks of a narrow screen', async () => {
  const home = await testHome()
  home.provider.script(
    sayAndWait(
      [
        `${long}\n\n`,
        '- a point in a list that is long enough to be wrapped as well, like the paragraph\n\n',
        'End of this.\n\n',
      ],
      'go',
      [Array.from({ length: 4 }, (_, index) => `Line ${index + 1}.\n\n`).join('')],
    ),
  )
  const chat = await openChat({ home, columns: 60, rows: 24 })
  send(chat, 'Begin')
  await chat.waitFor('End of this.')
  const [from, to] = [placeOf(chat, 'paragraph that'), placeOf(chat, 'like the paragraph')]
  mouse(chat, 'press', from)
  mouse(chat, 'drag', { x: to.x + 2, y: to.y })
  mouse(chat, 'drag', { x: to.x + 'like the'.length - 1, y: to.y })
  mouse(chat, 'release', { x: to.x + 'like the'.length - 1, y: to.y })
  await chat.waitFor('Copied')
  expect(copied(chat)).toBe(
    `${long.slice(2)}\n\n• a point in a list that is long enough to be wrapped as well, like the`,
  )
  const before = marked(chat)
  expect(before).toMatch(/^paragraph that .*like the$/)
  home.provider.release('go')
  await chat.waitFor('Line 4.')
  // The text has moved up, and what is marked is the same text.
  await chat.waitFor((rows) => rows.findIndex((row) => row.includes('paragraph that')) < from.y)
  expect(marked(chat)).toBe(before)
  chat.press('page-up')
  await chat.waitFor('> Begin')
  chat.type('x')
  await chat.waitFor(() => marked(chat) === '')
})

test('two clicks select a word and three a line, also outside the conversation', async () => {
  const home = await testHome()
  home.provider.script(say('See packages/cli/src/main.ts, and then some.'))
  const chat = await openChat({ home })
  send(chat, 'Where?')
  await chat.waitFor('and then some.')
  await chat.waitFor('Enter sends')
  const place = placeOf(chat, 'src/main')
  click(chat, place)
  click(chat, place)
  await chat.waitFor(() => copied(chat) === 'packages/cli/src/main.ts')
  click(chat, place)
  await chat.waitFor(() => copied(chat) === 'See packages/cli/src/main.ts, and then some.')
  chat.type('unsent')
  await chat.waitFor('unsent')
  const typed = placeOf(chat, 'unsent')
  click(chat, typed)
  click(chat, typed)
  await chat.waitFor(() => copied(chat) === 'unsent')
  await chat.waitFor(() => marked(chat) === 'unsent')
})

test('dragging to the edge scrolls, so that more can be selected than the screen shows', async () => {
  const home = await testHome()
  home.provider.script(say(Array.from({ length: 60 }, (_, index) => `Line ${index + 1}.\n\n`).join('')))
  const chat = await openChat({ home, rows: 20 })
  send(chat, 'Count')
  await chat.waitFor('Line 60.')
  await chat.waitFor('Enter sends')
  mouse(chat, 'press', placeOf(chat, 'Line 60.'))
  mouse(chat, 'drag', { x: 0, y: 5 })
  mouse(chat, 'drag', { x: 0, y: 0 })
  await chat.waitFor('Line 30.')
  mouse(chat, 'release', { x: 0, y: 0 })
  await chat.waitFor('Copied')
  expect(copied(chat)).toContain('Line 31.\n\nLine 32.')
  expect(copied(chat)).toMatch(/Line 59\.\n\nL$/)
})

function click(chat: Terminal, place: { x: number; y: number }): void {
  mouse(chat, 'press', place)
  mouse(chat, 'release', place)
}

/** Opens the session with this prompt from the list. */
async function goBack(chat: Terminal, prompt: string): Promise<void> {
  chat.press('ctrl-s')
  await chat.waitFor('Sessions of this folder')
  chat.type(prompt)
  await chat.waitFor(`› ${prompt}`)
  chat.press('enter')
}

test('a click on the line of a subagent opens its session, while it works and later, also in the sidebar', async () => {
  const home = await testHome()
  const description = 'count the files'
  const second = `Count the folders. ${'Count every one of them. '.repeat(20)}`
  home.provider.script(
    call({ id: 'task-1', name: 'task', input: { description, prompt: 'Count the files here.' } }),
    sayAndWait(['I am counting. '], 'go', ['There are none.']),
    call({ id: 'task-2', name: 'task', input: { description, prompt: second } }),
    say('There are two.'),
    say('The helpers have counted.'),
  )
  const chat = await openChat({ home, columns: 170 })
  send(chat, 'Send somebody to count')
  await chat.waitFor(/● task count the files · .* · \d+ message/)
  click(chat, placeOf(chat, 'task count the files'))
  await chat.waitFor('> Count the files here.')
  home.provider.release('go')
  await chat.waitFor('There are none.')
  await goBack(chat, 'Send somebody to count')
  await chat.waitFor('The helpers have counted.')
  // The first of two with the same name.
  click(chat, placeOf(chat, 'task count the files'))
  await chat.waitFor('> Count the files here.')
  await goBack(chat, 'Send somebody to count')
  await chat.waitFor('The helpers have counted.')
  await chat.waitFor(/✓ count the files[^]*✓ count the files/)
  // The newest is the first in the sidebar.
  click(chat, placeOf(chat, '✓ count the files'))
  await chat.waitFor('> Count the folders.')
})

test('a click on the line of a subagent of a session on a server opens its session', async () => {
  const home = await testHome()
  const task = { description: 'count the files', prompt: 'Count the files here.' }
  home.provider.script(
    say('Here.'),
    call({ id: 'task-1', name: 'task', input: task }),
    say('There are none.'),
    say('The helper found none.'),
  )
  expect(await runCommand({ home, args: ['run', 'Hello'] })).toMatchObject({ code: 0 })
  await using server = startCommand({ home, args: ['serve', '--json', '--port', '0'] })
  await server.untilSaid('}\n')
  const { pairing_link: link } = JSON.parse(server.stdout) as { pairing_link: string }
  const chat = await openChat({ home, args: ['attach', link, 'last'] })
  send(chat, 'Send somebody to count')
  await chat.waitFor('The helper found none.')
  click(chat, placeOf(chat, 'task count the files'))
  await chat.waitFor('> Count the files here.')
})
