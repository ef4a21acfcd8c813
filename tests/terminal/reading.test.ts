import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'
import { startTmux } from './tmux.ts'

const auto = { permissions: { mode: 'auto' } }

test('reads are one line, tasks are pinned, the prompt stays in view, and a run ends with what it did', async () => {
  const home = await testHome({ settings: auto })
  for (const name of ['a.ts', 'b.ts']) await writeFile(join(home.cwd, name), 'const x = 1\n'.repeat(20))
  const items = [
    { text: 'Look around', status: 'completed' },
    { text: 'Write it down', status: 'in_progress' },
  ]
  home.provider.script(
    call({ id: 'call_1', name: 'todo_write', input: { items } }),
    call({ id: 'call_2', name: 'read', input: { path: 'a.ts' } }),
    call({ id: 'call_3', name: 'read', input: { path: 'b.ts' } }),
    call({ id: 'call_4', name: 'grep', input: { pattern: 'const' } }),
    call({ id: 'call_5', name: 'write', input: { path: 'c.ts', content: 'one\ntwo\n' } }),
    say(`# Found\n\n${Array.from({ length: 15 }, (_, index) => `Paragraph ${index + 1}.`).join('\n\n')}`),
  )
  const chat = await openChat({ home, rows: 30 })
  send(chat, 'What is here?')
  await chat.waitFor('Paragraph 15.')
  await chat.waitFor(/– Worked \d+ s · 1 file \+2/)
  expect(chat.rows()[0]?.trimEnd()).toBe('> What is here?')
  expect(chat.screen()).toMatch(/Tasks: 1 of 2 done\n ▸ Write it down\n/)
  chat.press('page-up')
  await chat.waitFor(/✓ Explored read 2 files, searched 1 time *\n +Read .*\n +Searched /)
  expect(chat.screen()).not.toContain('const x = 1')
  expect(chat.screen()).not.toContain('environment:')
  chat.press('ctrl-o')
  await chat.waitFor('const x = 1')
})

test('from 160 columns on, a sidebar has tasks, changed files and jobs, also in tmux; a narrower screen has none', async () => {
  const home = await testHome({ settings: auto })
  const items = [
    { text: 'Look around', status: 'completed' },
    { text: 'Write it down', status: 'in_progress' },
  ]
  home.provider.script(
    call({ id: 'call_1', name: 'todo_write', input: { items } }),
    call({ id: 'call_2', name: 'write', input: { path: 'c.ts', content: 'one\ntwo\n' } }),
    call({ id: 'call_3', name: 'bash', input: { command: 'until [ -e over ]; do sleep 0.1; done', background: true } }),
    say('Seen.'),
  )
  const chat = await openChat({ home, columns: 170, rows: 30 })
  send(chat, 'What is here?')
  await chat.waitFor('Seen.')
  await chat.waitFor(/│ Context\n/)
  await chat.waitFor(/│ Tasks: 1 of 2 done\n[^]*│ ✓ Look around\n[^]*│ ▸ Write it down\n/)
  await chat.waitFor(/│ 1 changed file\n[^]*│ c\.ts +\+2 −0\n/)
  await chat.waitFor(/│ Background jobs\n[^]*│ ● until \[ -e over/)
  expect(chat.rows().every((row) => row.length <= 170)).toBe(true)
  // The task list is there once.
  expect(chat.screen().match(/Tasks: 1 of 2/g)).toHaveLength(1)
  chat.resize(159, 30)
  await chat.waitFor(
    (rows) => rows.some((row) => row.startsWith(' Tasks: 1 of 2 done')) && !rows.join('').includes('│'),
  )
  await using tmux = await startTmux({ home, columns: 200 })
  await tmux.waitFor('│ work')
  await writeFile(join(home.cwd, 'over'), '')
  await chat.waitFor((rows) => !rows.some((row) => row.includes('│ ● until')))
})

test('a message that waits is above the composer, and Up takes it back', async () => {
  const home = await testHome()
  home.provider.script(sayAndWait(['Busy ', 'now'], 'go', ['.']))
  await using tmux = await startTmux({ home })
  await tmux.waitFor('model-1')
  await tmux.type('Begin')
  await tmux.press('enter')
  await tmux.waitFor('Enter queues')
  await tmux.type('and the tests')
  await tmux.press('enter')
  await tmux.waitFor('» and the tests · after this run')
  await tmux.press('up')
  await tmux.waitFor('\n and the tests')
  expect(await tmux.screen()).not.toContain('»')
  home.provider.release('go')
})
