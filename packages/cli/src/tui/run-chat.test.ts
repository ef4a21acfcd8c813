import { spawn } from '@lydell/node-pty'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { startChat } from './testing/chat-driver.ts'
import type { ScriptedSource } from './testing/scripted-source.ts'

test('after any error, the terminal is restored before the error is reported', async () => {
  const program = fileURLToPath(import.meta.resolve('./testing/crashing-chat.ts'))
  const chat = spawn(process.execPath, ['-C', '@tapetree/source', program], { cols: 80, rows: 24 })
  let bytes = ''
  let isTyped = false
  chat.onData((data) => {
    bytes += data
    if (isTyped || !bytes.includes('Enter sends')) return
    isTyped = true
    chat.write('x')
  })
  const code = await new Promise((resolve) => chat.onExit(({ exitCode }) => resolve(exitCode)))
  expect(code).toBe(1)
  const [leftScreen, leftPaste, leftMouse, reported] = [
    '\u001b[?1049l',
    '\u001b[?2004l',
    '\u001b[?1000l',
    'reported:',
  ].map((part) => bytes.indexOf(part))
  expect(Math.min(leftScreen ?? -1, leftPaste ?? -1, leftMouse ?? -1)).toBeGreaterThan(0)
  expect(reported).toBeGreaterThan(Math.max(leftScreen ?? 0, leftPaste ?? 0, leftMouse ?? 0))
}, 20_000)

test.each(['drawn', 'plain'])(
  'a %s chat whose terminal disappears shuts down cleanly, even without a signal',
  async (look) => {
    const program = fileURLToPath(import.meta.resolve('./testing/left-alone-chat.ts'))
    const chat = spawn(process.execPath, ['-C', '@tapetree/source', program, look], { cols: 80, rows: 24 })
    const code = new Promise((resolve) => chat.onExit(({ exitCode }) => resolve(exitCode)))
    let bytes = ''
    chat.onData((data) => {
      bytes += data
      // Closes our end of it; node-pty has no other way to do that, and does not document this one.
      if (/Enter sends|Type a message/.test(bytes)) (chat as unknown as { destroy(): void }).destroy()
    })
    expect(await code).toBe(7)
  },
  20_000,
)

test('the composer appears before the session is open, and messages sent meanwhile go out then', async () => {
  const opening = Promise.withResolvers<ReturnType<ScriptedSource['opened']>>()
  await using chat = startChat({ first: opening.promise })
  const { terminal, source } = chat
  terminal.type('early')
  terminal.press('\r')
  chat.clock.now += 3000
  await terminal.waitFor('Opening the session, 3 s')
  const opened = source.opened('late')
  opening.resolve(opened)
  opened.handle.user('early')
  await terminal.waitFor('> early')
  expect(opened.handle.calls).toEqual([{ op: 'prompt', args: { text: 'early' } }])
})

test('a session that cannot be opened ends the chat with the reason, and the terminal is restored', async () => {
  const chat = startChat({ first: Promise.reject(new Error('It is owned elsewhere.')) })
  await expect(chat.ended).rejects.toThrow('It is owned elsewhere.')
  expect(chat.terminal.isStarted).toBe(false)
})

test('a request to end the process closes the chat as if the user had', async () => {
  const controller = new AbortController()
  const chat = startChat({ signal: controller.signal })
  await chat.terminal.waitFor('Enter sends')
  controller.abort()
  expect(await chat.ended).toEqual({ sessionId: 'first' })
})
