import { expect, test } from 'vitest'
import { keys, startChat } from '../testing/chat-driver.ts'

const look = { screenReader: true }

test('lines are only added: the author comes first, and the cursor never moves back', async () => {
  await using chat = startChat({ look })
  const { terminal, handle } = chat
  await terminal.waitFor('Type a message')
  terminal.type('helo')
  terminal.press(keys.backspace)
  terminal.type('lo')
  terminal.press(keys.enter)
  handle.user('hello')
  handle.startRun()
  await terminal.waitFor('Working.')
  handle.streamText('a1', 'half a sen')
  handle.assistant('A whole sentence.')
  handle.endRun()
  await terminal.waitFor('Ready.')
  const shown = terminal.screen().join('\n')
  expect(shown).toContain('You: hello')
  expect(shown).toContain('Agent: A whole sentence.')
  expect(shown).not.toContain('half a sen\n')
  expect(handle.calls).toEqual([{ op: 'prompt', args: { text: 'hello' } }])
  expect(terminal.written).not.toContain('\u001b')
})

test('a key that is released does nothing in the chat for a screen reader', async () => {
  await using chat = startChat({ look })
  const { terminal } = chat
  await terminal.waitFor('Type a message')
  // As terminals with the Kitty keyboard protocol report it.
  terminal.press('\u001b[97u')
  terminal.press('\u001b[97;1:3u')
  await terminal.waitFor('> a')
  terminal.press('\u001b[99;5u')
  terminal.press('\u001b[99;5:3u')
  await terminal.waitFor('Press Ctrl-C again to quit.')
  terminal.press('\u001b[98u')
  terminal.press('\u001b[98;1:3u')
  await terminal.waitFor('> b')
  expect(terminal.screen().join('\n')).not.toMatch(/aa|bb/)
})

test('a permission is a numbered choice, and an invalid number asks again', async () => {
  await using chat = startChat({ look })
  const { terminal, handle } = chat
  handle.startRun()
  handle.requestPermission({
    requestId: 'p1',
    tool: 'bash',
    title: 'rm -rf build',
    input: { command: 'rm -rf build' },
    options: [
      { optionId: 'once', label: 'Allow once', kind: 'allow_once' },
      { optionId: 'no', label: 'Do not allow', kind: 'reject_once' },
    ],
  })
  await terminal.waitFor('2. Do not allow')
  terminal.type('7')
  terminal.press(keys.enter)
  await terminal.waitFor('7 is not one of the numbers')
  terminal.type('2')
  terminal.press(keys.enter)
  expect(handle.calls).toEqual([{ op: 'permission.answer', args: { request_id: 'p1', option_id: 'no' } }])
})

test('a panel is a numbered list', async () => {
  await using chat = startChat({ look })
  const { terminal, handle } = chat
  await terminal.waitFor('Type a message')
  terminal.type('/mode')
  terminal.press(keys.enter)
  await terminal.waitFor('4. plan')
  terminal.type('4')
  terminal.press(keys.enter)
  await terminal.waitFor('Permission mode: plan.')
  expect(handle.calls).toEqual([{ op: 'set_config', args: { mode: 'plan' } }])
})

test('typed text never grants a permission, and a request answered elsewhere is withdrawn', async () => {
  await using chat = startChat({ look })
  const { terminal, handle } = chat
  handle.startRun()
  handle.requestPermission({ requestId: 'p1', tool: 'bash', title: 'rm -rf build', options: [] })
  await terminal.waitFor('2. Do not allow')
  terminal.type('what does it do?')
  terminal.press(keys.enter)
  await terminal.waitFor('is not one of the numbers')
  handle.resolve('p1')
  await terminal.waitFor('no longer needs an answer')
  handle.requestPermission({ requestId: 'q1', tool: 'ask_user', title: 'Which color?', options: [] })
  await terminal.waitFor('Type your answer')
  terminal.type('green')
  terminal.press(keys.enter)
  expect(handle.calls).toEqual([
    { op: 'permission.answer', args: { request_id: 'q1', text: 'green', outcome: 'allowed' } },
  ])
})

test('/undo asks by numbers what goes back, and puts the message into the line', async () => {
  await using chat = startChat({ look })
  const { terminal, handle } = chat
  handle.user('Rename it.')
  const changes = [{ path: 'a.ts', change: 'changed', action: 'restored' }]
  handle.reply = (op) =>
    op === 'rewind' ? { text: 'Rename it.', files: { changes, skipped: [], kept_copies: [] } } : undefined
  await terminal.waitFor('You: Rename it.')
  terminal.type('/undo')
  terminal.press(keys.enter)
  await terminal.waitFor('1. Conversation and files')
  terminal.type('1')
  terminal.press(keys.enter)
  await terminal.waitFor('/redo takes it back.')
  expect(handle.calls.at(-1)).toEqual({ op: 'rewind', args: { entry_id: 'e1', what: 'both' } })
  terminal.press(keys.enter)
  await expect.poll(() => handle.calls.at(-1)).toEqual({ op: 'prompt', args: { text: 'Rename it.' } })
})
