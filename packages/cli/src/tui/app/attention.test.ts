import { expect, test } from 'vitest'
import { startChat, type RunningChat } from '../testing/chat-driver.ts'

const [focusIn, focusOut] = ['\u001b[I', '\u001b[O']

function ask({ handle }: RunningChat, requestId: string): void {
  handle.requestPermission({ requestId, tool: 'bash', title: 'Run in /work: ls', options: [] })
}

function calls({ terminal }: RunningChat): string[] {
  return [...terminal.written.matchAll(/\u0007\u001b\](?:9|777);([^\u0007]*)\u0007/g)].map(([, text = '']) => text)
}

test('the title says whether the agent works or waits, and how many answers are pending', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  const titles: string[] = []
  handle.subscribe(() => titles.at(-1) !== terminal.title && titles.push(terminal.title))
  handle.startRun()
  ask(chat, 'a')
  ask(chat, 'b')
  handle.resolve('a')
  handle.resolve('b')
  handle.endRun()
  handle.setState('presence', [])
  expect(titles).toEqual([
    '● tapetree · work',
    '? (1) tapetree · work',
    '? (2) tapetree · work',
    '? (1) tapetree · work',
    '● tapetree · work',
    'tapetree · work',
  ])
})

test('while another window has the focus, a bell and a notification call the user, once for each reason', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  handle.startRun()
  ask(chat, 'seen')
  expect(calls(chat)).toEqual([])
  terminal.press(focusOut)
  ask(chat, 'a')
  handle.setState('presence', [])
  handle.resolve('seen')
  handle.resolve('a')
  handle.endRun()
  expect(calls(chat)).toEqual(['tapetree needs you in work', 'tapetree is done in work'])
  terminal.press(focusIn)
  handle.startRun('run-2')
  handle.endRun('completed', 'run-2')
  expect(calls(chat)).toHaveLength(2)
})

test('a terminal that does not report its focus calls after a minute without a key', async () => {
  await using chat = startChat({ look: { altScreen: false }, env: { VTE_VERSION: '7600' } })
  const { terminal, handle, clock } = chat
  await terminal.waitFor('Enter sends')
  handle.startRun()
  clock.now += 61_000
  handle.endRun()
  expect(calls(chat)).toEqual(['notify;tapetree;tapetree is done in work'])
})

test('reports of the focus never reach the composer', async () => {
  await using chat = startChat({ look: { altScreen: false } })
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(focusOut)
  terminal.press(focusIn)
  terminal.type('hello')
  const screen = await terminal.waitFor(' hello')
  expect(screen).not.toMatch(/\[[IO]/)
})
