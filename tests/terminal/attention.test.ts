import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { answer, openChat, send, testHome } from './chat.ts'
import { startTmux } from './tmux.ts'

test('a terminal without the focus is called when the agent asks and when it is done; its title says the same', async () => {
  const home = await testHome()
  home.provider.script(call({ id: 'call_1', name: 'bash', input: { command: 'touch made' } }), say('Made.'))
  const chat = await openChat({ home, rows: 40 })
  const titles: string[] = []
  let bells = 0
  chat.emulator.onTitleChange((title) => titles.push(title))
  chat.emulator.onBell(() => bells++)
  // What a terminal sends when another window gets the focus.
  chat.type('\u001b[O')
  send(chat, 'Make it')
  await chat.waitFor('Allow bash?')
  await answer(chat, '1', 'Made.')
  await chat.waitFor('Enter sends')
  expect(chat.bytes.toString()).toContain('\u001b]9;tapetree needs you in work\u0007')
  expect(chat.bytes.toString()).toContain('\u001b]9;tapetree is done in work\u0007')
  expect(bells).toBe(2)
  expect(titles).toEqual(['● tapetree · work', '? (1) tapetree · work', '● tapetree · work', 'tapetree · work'])
})

test('the status line has the folder, the branch and the name of the session; tmux shows the title', async () => {
  const home = await testHome()
  await promisify(execFile)('git', ['init', '-q', '-b', 'feat/one', home.cwd])
  home.provider.script(sayAndWait(['Busy '], 'go', ['.']))
  await using tmux = await startTmux({ home, columns: 140 })
  await tmux.waitFor('work (feat/one) · model-1')
  await tmux.type('/name date parser')
  await tmux.press('enter')
  await tmux.waitFor('work (feat/one) · date parser · model-1')
  await tmux.type('Begin')
  await tmux.press('enter')
  await tmux.waitFor('Busy')
  expect(await tmux.title()).toBe('● tapetree · work')
  home.provider.release('go')
})
