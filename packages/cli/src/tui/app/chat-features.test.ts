import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ctrl, keys, pasted, startChat } from '../testing/chat-driver.ts'
import type { ScriptedSource } from '../testing/scripted-source.ts'

test('! runs a command whose output the model sees, !! one that it does not', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('!git status')
  terminal.press(keys.enter)
  terminal.type('!!pwd')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('pwd'))
  expect(handle.calls).toEqual([
    { op: 'bash', args: { command: 'git status' } },
    { op: 'bash', args: { command: 'pwd', exclude_from_context: true } },
  ])
})

test('Ctrl-C stops a typed command, and the chat continues', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  const done = Promise.withResolvers<void>()
  handle.reply = (op) => (op === 'bash' ? done.promise : undefined)
  await terminal.waitFor('Enter sends')
  terminal.type('!sleep 60')
  terminal.press(keys.enter)
  await terminal.waitFor('Ctrl-C stops your command')
  terminal.press(keys.ctrlC)
  await terminal.waitFor('Everything so far is kept')
  expect(handle.calls.at(-1)).toEqual({ op: 'cancel', args: {} })
  done.resolve()
  await terminal.waitFor((screen) => !screen.includes('stops your command'))
  expect(handle.isClosed).toBe(false)
})

test('problems outside the conversation appear while the chat runs', async () => {
  let tell: (text: string) => void = () => undefined
  await using chat = startChat({ remarks: (listener) => (tell = listener) })
  await chat.terminal.waitFor('Enter sends')
  tell('mcp docs: it has ended \u001b[2J')
  await chat.terminal.waitFor('mcp docs: it has ended')
  expect(chat.terminal.written).not.toContain('ended \u001b[2J')
})

test('a theme change keeps the scroll position', async () => {
  await using chat = startChat({
    arrange: (handle) => {
      for (let turn = 0; turn < 100; turn++) handle.user(`message number ${turn}`)
    },
  })
  const { terminal } = chat
  await terminal.waitFor('message number 99')
  terminal.press('\u001b[1;5H')
  await terminal.waitFor('message number 0')
  terminal.type('/theme')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => screen.includes('for light terminals') && screen.includes('message number 0'))
  const before = terminal.written.length
  terminal.press(keys.down)
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('for light terminals') && screen.includes('message number 0'))
  expect(terminal.written.slice(before)).toContain('48;5;254')
})

test('a long paste is one placeholder in the composer and is sent whole', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n')
  await terminal.waitFor('Enter sends')
  terminal.press(pasted(lines))
  await terminal.waitFor('[paste #1 +30 lines]')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('[paste'))
  expect(handle.calls).toEqual([{ op: 'prompt', args: { text: lines } }])
})

test('a backslash before Enter, and Alt-Enter, insert a new line', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('one\\')
  terminal.press(keys.enter)
  terminal.type('two')
  terminal.press(keys.altEnter)
  terminal.type('three')
  await terminal.waitFor('three')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => !screen.includes('three'))
  expect(handle.calls).toEqual([{ op: 'prompt', args: { text: 'one\ntwo\nthree' } }])
})

test('@ offers files, and / offers commands of the chat and of the session', async () => {
  await using chat = startChat({
    arrange: (handle, source) => {
      source.paths = ['src/main.ts', 'src/made.ts', 'bad\u001b[2Jname.ts']
      handle.setState('commands', [{ name: 'review', description: 'look at the changes' }])
    },
  })
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('see @ma')
  await terminal.waitFor('src/made.ts')
  terminal.press(keys.tab)
  await terminal.waitFor('see @src/main.ts')
  terminal.press(ctrl('u'))
  terminal.type('/rev')
  await terminal.waitFor('look at the changes')
})

test('a pasted image path becomes a placeholder, and the image is sent with the message', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-image-'))
  try {
    await writeFile(join(folder, 'a b.png'), 'not really')
    await using chat = startChat({ cwd: folder })
    const { terminal, handle, source } = chat
    handle.reply = () => ({ outcome: 'handled', say: 'It was taken.' })
    await terminal.waitFor('Enter sends')
    terminal.press(pasted(`${folder}/a\\ b.png`))
    await terminal.waitFor('[image 1: a b.png]')
    terminal.type('what is it')
    terminal.press(keys.enter)
    await terminal.waitFor('It was taken.')
    expect(source.images).toEqual([{ bytes: Buffer.from('not really'), mediaType: 'image/png' }])
    expect(handle.calls).toEqual([
      { op: 'prompt', args: { text: '[image 1: a b.png] what is it', image_ids: ['1'.padStart(64, '0')] } },
    ])
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('Ctrl-G opens the text in the user’s editor and takes the result', async () => {
  await using chat = startChat({ editor: 'printf " and more" >>', cwd: tmpdir(), env: { PATH: process.env['PATH'] } })
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('words')
  terminal.press(ctrl('g'))
  await terminal.waitFor('words and more')
  expect(terminal.isAltScreen).toBe(true)
})

test.each([{ screenReader: false }, { screenReader: true }])(
  'a chat attached to another machine lists its sessions: %j',
  async (look) => {
    const arrange = (_handle: unknown, source: ScriptedSource): void => {
      Object.assign(source.jobs, { isRemote: true })
      const info = { created: '', modified: '', messageCount: 1, status: 'idle', queueLength: 0, cost: 0 } as const
      source.sessions = [{ ...info, damaged: false, id: 'there', name: 'on the server', cwd: '/srv/app' }]
    }
    await using chat = startChat({ look, first: undefined, arrange })
    await chat.terminal.waitFor('on the server')
  },
)

test('Ctrl-R searches earlier prompts, of this chat or another', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-history-'))
  try {
    const historyFile = join(folder, 'history.jsonl')
    await writeFile(historyFile, '"mend the parser"\n"write a test"\n')
    await using chat = startChat({ historyFile })
    const { terminal } = chat
    await terminal.waitFor('Enter sends')
    terminal.press(ctrl('r'))
    await terminal.waitFor('Earlier prompts')
    terminal.type('pars')
    await terminal.waitFor((screen) => !screen.includes('write a test'))
    terminal.press(keys.enter)
    await terminal.waitFor((screen) => screen.includes(' mend the parser') && !screen.includes('Earlier prompts'))
  } finally {
    await rm(folder, { recursive: true })
  }
})

test('the conversation scrolls by page, shows how to return, and can be searched', async () => {
  await using chat = startChat({
    arrange: (handle) => {
      for (let turn = 0; turn < 100; turn++) handle.user(`message number ${turn}`)
    },
  })
  const { terminal } = chat
  await terminal.waitFor('message number 99')
  terminal.press(keys.pageUp)
  await terminal.waitFor((screen) => !screen.includes('message number 99') && screen.includes('End to the newest'))
  terminal.press(keys.end)
  await terminal.waitFor('message number 99')
  terminal.press('\u001b[<64;5;5M')
  await terminal.waitFor((screen) => !screen.includes('message number 99'))
  terminal.press(ctrl('f'))
  await terminal.waitFor('Find in the conversation')
  terminal.type('number 12')
  terminal.press(keys.enter)
  await terminal.waitFor((screen) => screen.includes('message number 12') && !screen.includes('message number 9'))
})

test('Shift-Tab switches to the next permission mode, and /mode names one', async () => {
  await using chat = startChat({
    arrange: (handle) => handle.setState('config', { model: null, thinkingLevel: null, mode: 'ask' }),
  })
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(keys.shiftTab)
  await terminal.waitFor('Permission mode: accept-edits.')
  terminal.type('/mode paln')
  terminal.press(keys.enter)
  await terminal.waitFor('Did you mean plan?')
  expect(handle.calls).toEqual([{ op: 'set_config', args: { mode: 'accept-edits' } }])
})

test('a disconnected session says so, and keeps typed text', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.type('patience')
  handle.setStatus({ type: 'waiting', delayMs: 4000 })
  await terminal.waitFor((screen) => screen.includes('not connected; retrying in 4 s') && screen.includes('patience'))
  handle.setStatus({ type: 'attached' })
  await terminal.waitFor((screen) => !screen.includes('not connected'))
})

test('escape sequences of models, names and errors become visible characters', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  handle.user('\u001b]0;owned\u0007 hi')
  handle.assistant('\u001b[2J\u009b31m gone?')
  handle.setState('config', { model: { provider: 'p', modelId: 'm\u001b[5n' }, thinkingLevel: null, mode: null })
  handle.reply = () => {
    throw new Error('bad \u001bc reset')
  }
  await terminal.waitFor('gone?')
  terminal.type('x')
  terminal.press(keys.enter)
  await terminal.waitFor('reset')
  expect(terminal.written).not.toMatch(/\u001b\]0;|\u009b|\u001bc|\u001b\[5n/)
})

test('without the alternate screen the conversation is in the scrollback of the terminal', async () => {
  const chat = startChat({ look: { altScreen: false }, size: { columns: 60, rows: 12 } })
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  for (let turn = 0; turn < 20; turn++) handle.user(`said ${turn}`)
  await terminal.waitFor('said 19')
  expect(terminal.isAltScreen).toBe(false)
  terminal.press(keys.ctrlD)
  await chat.ended
  await terminal.settled()
  const all = terminal.scrollback().join('\n')
  expect(all).toContain('said 0')
  expect(all).toContain('said 19')
})
