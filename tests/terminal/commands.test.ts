import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { call, say } from '../peers/answers.ts'
import { answer, openChat, send, testHome } from './chat.ts'
import { runCommand, startCommand } from './command.ts'
import { startTmux } from './tmux.ts'

test('what was allowed twice is proposed by /permissions, and once accepted it is not asked again', async () => {
  const home = await testHome()
  const make = (id: string): ReturnType<typeof call> => call({ id, name: 'bash', input: { command: `mkdir ${id}` } })
  home.provider.script(make('one'), make('two'), say('Twice.'), make('three'), say('Without a question.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'Do it twice')
  await chat.waitFor('1. Allow once')
  await answer(chat, '1', 'mkdir two')
  await chat.waitFor('1. Allow once')
  await answer(chat, '1', 'Twice.')
  await chat.waitFor('Enter sends')
  send(chat, '/permissions')
  await chat.waitFor('allowed 2 times in 1 session')
  chat.type('1')
  await chat.waitFor('Nothing to propose')
  expect(chat.screen()).toMatch(/allow command mkdir[^]*settings\.json:\d+, for this project/)
  chat.press('escape')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toContain('from now on')
  const settings = JSON.parse(await readFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), 'utf8')) as {
    projects: Record<string, { allow: string[] }>
  }
  expect(settings.projects[home.cwd]?.allow).toHaveLength(1)
  send(chat, 'Once more')
  await chat.waitFor('Without a question.')
})

test('/jobs shows a background command with its output, and stops it', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const command = 'echo it listens; sleep 1000'
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command, background: true } }), say('Started.'))
  const chat = await openChat({ home })
  send(chat, 'Start it')
  await chat.waitFor('Started.')
  await chat.waitFor('Enter sends')
  send(chat, '/jobs')
  await chat.waitFor(`${command}: running`)
  await chat.waitFor(/│ it listens/)
  chat.type('3')
  await chat.waitFor(`${command}: stopped`)
})

test('/jobs of a terminal that is attached to a server shows the background command there, and stops it', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const command = 'echo it listens; sleep 1000'
  home.provider.script(
    say('Here.'),
    call({ id: 'call_1', name: 'bash', input: { command, background: true } }),
    say('Started.'),
  )
  expect(await runCommand({ home, args: ['run', 'Hello'] })).toMatchObject({ code: 0 })
  await using server = startCommand({ home, args: ['serve', '--json', '--port', '0'] })
  await server.untilSaid('}\n')
  const { pairing_link: link } = JSON.parse(server.stdout) as { pairing_link: string }
  const chat = await openChat({ home, args: ['attach', link, 'last'] })
  send(chat, 'Start it')
  await chat.waitFor('Started.')
  await chat.waitFor('Enter sends')
  send(chat, '/jobs')
  await chat.waitFor(`${command}: running`)
  await chat.waitFor(/│ it listens/)
  chat.type('3')
  await chat.waitFor(`${command}: stopped`)
})

test('a background command shows what it prints in the conversation, and how it ended', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  const command = 'echo it listens; until [ -e over ]; do sleep 0.1; done; echo it ends; exit 3'
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command, background: true } }), say('Started.'))
  const chat = await openChat({ home, columns: 140 })
  send(chat, 'Start it')
  await chat.waitFor('Started.')
  await chat.waitFor(/● bash .* · runs in the background\n +it listens\n/)
  await writeFile(join(home.cwd, 'over'), '')
  await chat.waitFor(/✗ bash .* · background job: exit code 3\n +it listens\n +it ends\n/)
})

test('/context shows what fills the context, and takes a compaction back', async () => {
  const home = await testHome({ settings: { compaction: { keepTokens: 100 } } })
  home.provider.script(say(`${'word '.repeat(20_000)}\n\nOne.`), say('Two.'), say('## Goal\nA summary.'))
  const chat = await openChat({ home, rows: 40 })
  send(chat, 'The first question')
  await chat.waitFor('One.')
  await chat.waitFor('Enter sends')
  send(chat, 'The second question')
  await chat.waitFor('Two.')
  await chat.waitFor('Enter sends')
  send(chat, '/compact')
  await chat.waitFor('2 messages summarized')
  await chat.waitFor('Enter sends')
  send(chat, '/context')
  await chat.waitFor('Undo the compaction')
  expect(chat.screen()).toMatch(/tokens of 100k, \d+%/)
  expect(chat.screen()).toMatch(/tool descriptions +█+/)
  const [, id = ''] = /Session ([0-9a-f-]{36})/.exec(chat.screen()) ?? []
  const log = chat.screen().replaceAll(/ *│\n│ */g, '')
  expect(log).toMatch(new RegExp(`Log in */\\S+/${id}`))
  chat.type('3')
  await chat.waitFor('user: The first question')
  chat.press('escape')
  await chat.waitFor('Enter sends')
  send(chat, '/context')
  await chat.waitFor('Undo the compaction')
  chat.type('4')
  await chat.waitFor('The summary is undone')
  expect(chat.screen()).not.toContain('messages summarized')
})

test('/share writes the session without its secrets, and never over another file', async () => {
  const home = await testHome()
  home.provider.script(say('Noted.'))
  const chat = await openChat({ home, columns: 160 })
  send(chat, 'Say something')
  await chat.waitFor('Noted.')
  await chat.waitFor('Enter sends')
  send(chat, '/share markdown')
  await chat.waitFor(/Wrote .*\.md \(/)
  const [, path = ''] = /Wrote (\S+\.md)/.exec(chat.screen()) ?? []
  expect(await readFile(path, 'utf8')).toContain('Noted.')
  await writeFile(path, 'mine')
  send(chat, '/share markdown')
  await chat.waitFor(/Wrote .*-2\.md \(/)
  expect(await readFile(path, 'utf8')).toBe('mine')
})

test('in tmux, ? shows the sheet, and /mcp says what is wrong with a server', async () => {
  const home = await testHome({ settings: { mcpServers: { broken: { command: 'false' } } } })
  await using tmux = await startTmux({ home })
  await tmux.waitFor('model-1')
  await tmux.type('?')
  await tmux.waitFor('Ctrl-T')
  await tmux.press('escape')
  await tmux.waitFor('Enter sends')
  await tmux.type('/mcp')
  await tmux.press('enter')
  await tmux.waitFor('broken')
})

test('Ctrl-K finds a file by a few letters and puts it into the message', async () => {
  const home = await testHome()
  await writeFile(join(home.cwd, 'release-notes.md'), '')
  const chat = await openChat({ home })
  chat.press('ctrl-k')
  await chat.waitFor('Go to')
  chat.type('relno')
  await chat.waitFor(/› release-notes\.md .*file/)
  chat.press('enter')
  await chat.waitFor('@release-notes.md')
})

test('the next chat in this project starts with the model, mode and theme that were chosen, and /config says why', async () => {
  const home = await testHome()
  const file = join(home.env['TAPETREE_HOME'] ?? '', 'settings.json')
  const settings = JSON.parse(await readFile(file, 'utf8')) as { providers: { fake: { models: { id: string }[] } } }
  const { models } = settings.providers.fake
  models.push({ ...models[0], id: 'model-2' })
  await writeFile(file, JSON.stringify(settings, null, 2), { mode: 0o600 })
  const first = await openChat({ home })
  for (const [command, until] of [
    ['/model model-2', 'model-2 ·'],
    ['/mode accept-edits', '· accept-edits'],
    ['/theme light', 'Enter sends'],
  ] as const) {
    send(first, command)
    await first.waitFor(until)
  }
  await first.waitFor(() => readFileSync(file, 'utf8').includes('"theme": "light"'))
  first.press('ctrl-d')
  await first.exit
  for (const _start of ['with questions', 'at once']) {
    const next = await openChat({ home, until: 'model-2' })
    await next.waitFor('· accept-edits')
    send(next, '/config')
    await next.waitFor('theme: light')
    expect(next.screen()).toMatch(/model: fake\/model-2[^]*from .*settings\.json:\d+, for this project/)
    // The heading in the light theme.
    expect(next.bytes.toString('latin1')).toContain('38;5;25m')
    next.press('escape')
    await next.waitFor('Enter sends')
    next.press('ctrl-d')
    await next.exit
  }
})
