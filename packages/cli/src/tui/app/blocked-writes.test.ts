import type { WireBlockedWrites } from '@tapetree/client/protocol'
import { expect, test } from 'vitest'
import { keys, startChat } from '../testing/chat-driver.ts'
import type { ScriptedHandle } from '../testing/scripted-handle.ts'

const write: WireBlockedWrites['writes'][number] = {
  id: 'job-1.0',
  path: '.vscode',
  call_id: 'c1',
  files: [
    { path: '.vscode/tasks.json', size_bytes: 9, text: '{ "a": 1 }\n\u001b[2Jx' },
    { path: '.vscode/link', size_bytes: 4, target: '/etc' },
  ],
  file_count: 2,
  is_occupied: false,
}

function arranged(found: WireBlockedWrites): (handle: ScriptedHandle) => void {
  return (handle) => {
    handle.assistant('Hi.')
    handle.reply = (op): unknown => (op === 'blocked' ? found : undefined)
  }
}

const argumentsOf = ({ calls }: ScriptedHandle): unknown[] =>
  calls.filter((call) => call.op === 'blocked').map(({ args }) => args)

test('/blocked shows what a blocked write contains, and applies it', async () => {
  await using chat = startChat({ arrange: arranged({ writes: [write] }) })
  const { terminal, handle } = chat
  await terminal.waitFor('Hi.')
  terminal.type('/blocked')
  terminal.press(keys.enter)
  const screen = await terminal.waitFor('Blocked: .vscode')
  expect(screen).toContain('+{ "a": 1 }')
  expect(screen).toContain('+␛[2Jx')
  expect(screen).toContain('+++ .vscode/link (a link to /etc)')
  terminal.press('2')
  await terminal.waitFor('Applied .vscode.')
  expect(argumentsOf(handle)).toEqual([{}, { apply: 'job-1.0' }])
})

test('/blocked changes nothing by Enter alone, and lists several', async () => {
  const other = { ...write, id: 'job-2.0', path: '.claude', is_occupied: true }
  const home = { folder: '/keep/home-written', files: [{ path: '.npm/x', size_bytes: 1 }], file_count: 1 }
  await using chat = startChat({ arrange: arranged({ writes: [write, other], home }) })
  const { terminal, handle } = chat
  await terminal.waitFor('Hi.')
  terminal.type('/blocked')
  terminal.press(keys.enter)
  const list = await terminal.waitFor('Blocked writes')
  expect(list).toContain('.claude')
  expect(list).toContain('~/.npm/x')
  terminal.press('2')
  const screen = await terminal.waitFor('Blocked: .claude')
  expect(screen).not.toContain('Apply')
  terminal.press(keys.enter)
  await terminal.waitFor((shown) => !shown.includes('Blocked: .claude'))
  expect(argumentsOf(handle)).toEqual([{}])
})

test('/blocked says that nothing was blocked', async () => {
  await using chat = startChat({ arrange: arranged({ writes: [] }) })
  await chat.terminal.waitFor('Hi.')
  chat.terminal.type('/blocked')
  chat.terminal.press(keys.enter)
  await chat.terminal.waitFor('Nothing was blocked.')
})
