import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say } from '../peers/answers.ts'
import { answer, openChat, send, testHome } from './chat.ts'
import type { Cell } from './screen.ts'
import { startTmux } from './tmux.ts'

const source = Array.from({ length: 40 }, (_, index) => `const value${index + 1} = ${index + 1}\n`).join('')
const edit = { path: 'values.ts', oldText: 'value20 = 20', newText: 'value20 = 21' }

test('an edit asks with a diff: its place, colors, the path once; f makes it larger, and /diff and an exported page show it', async () => {
  const home = await testHome()
  await writeFile(join(home.cwd, 'values.ts'), source)
  home.provider.script(
    call({ id: 'call_1', name: 'read', input: { path: 'values.ts' } }),
    call({ id: 'call_2', name: 'edit', input: edit }),
    say('Changed.'),
  )
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Change it')
  await chat.waitFor(/ 20 - const value20 = 20 /)
  const dialog = chat.screen().split('Allow edit?')[1] ?? ''
  expect(dialog).toContain('values.ts  +1 −1')
  expect(dialog).toContain('⋯ 16 unchanged lines')
  expect(dialog.match(/values\.ts/g)).toHaveLength(1)
  // The added line has a background, the changed word another one, and `const` the color of a keyword.
  await chat.waitFor(() => backgrounds().length === 2)
  await chat.waitFor(() => keyword()?.foreground !== undefined)
  await answer(chat, 'f', 'f smaller')
  await answer(chat, '1', 'Changed.')
  expect(await readFile(join(home.cwd, 'values.ts'), 'utf8')).toContain('value20 = 21')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toContain('edit values.ts · +1 −1')
  send(chat, '/diff')
  await chat.waitFor('Changed in this session')
  expect(chat.screen()).toMatch(/ 20 \+ const value20 = 21/)
  chat.type('s')
  await chat.waitFor(/20 - const value20 = 20 .* 20 \+ const value20 = 21/)
  chat.press('escape')
  await chat.waitFor('Enter sends')
  send(chat, '/share html')
  await chat.waitFor('No secrets were found')
  const page = (await readdir(home.cwd)).find((name) => name.endsWith('.html')) ?? ''
  const keyword20 = '<span class="s-keyword">const</span> value20'
  expect(await readFile(join(home.cwd, page), 'utf8')).toContain(`<ins>   20 + ${keyword20}`)

  function addedRow(): Cell[] {
    return chat.cells()[chat.rows().findIndex((each) => each.includes('+ const value20 = 21'))] ?? []
  }

  function backgrounds(): unknown[] {
    return [...new Set(addedRow().flatMap(({ background }) => background ?? []))]
  }

  function keyword(): Cell | undefined {
    return addedRow().find(({ text }) => text === 'c')
  }
})

test('in tmux, a wide window shows the old file beside the new one', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  await writeFile(join(home.cwd, 'values.ts'), source)
  home.provider.script(
    call({ id: 'call_1', name: 'read', input: { path: 'values.ts' } }),
    call({ id: 'call_2', name: 'edit', input: edit }),
    say('Changed.'),
  )
  await using tmux = await startTmux({ home, columns: 140, rows: 30 })
  await tmux.waitFor('model-1')
  await tmux.type('Change it')
  await tmux.press('enter')
  await tmux.waitFor('Changed.')
  expect(await tmux.screen()).toMatch(/20 - const value20 = 20 +│ +20 \+ const value20 = 21/)
})

test('a diff of 5,000 lines is scrolled to its end, and each screen gets its colors', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const content = Array.from({ length: 5000 }, (_, line) => `const value${line + 1} = ${line + 1}\n`).join('')
  home.provider.script(call({ id: 'call_1', name: 'write', input: { path: 'values.ts', content } }), say('Written.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Write it')
  await chat.waitFor('Written.')
  await chat.waitFor('Enter sends')
  send(chat, '/diff')
  await chat.waitFor(/Changed in this session .*\+5000/)
  const isColored = (words: string): boolean => {
    const row = chat.rows().findIndex((each) => each.includes(words))
    const at = chat.rows()[row]?.indexOf('const') ?? -1
    return chat.cells()[row]?.[at]?.foreground !== undefined
  }
  await chat.waitFor(() => isColored('const value1 = 1'))
  chat.press('end')
  await chat.waitFor('5000 + const value5000 = 5000')
  await chat.waitFor(() => isColored('const value5000 = 5000'))
})
