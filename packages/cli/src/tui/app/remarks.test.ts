import type { StateValues } from '@tapetree/client'
import { expect, test } from 'vitest'
import { keys, startChat, type RunningChat } from '../testing/chat-driver.ts'

function send({ terminal }: RunningChat, text: string): void {
  terminal.type(text)
  terminal.press(keys.enter)
}

test.each([
  ['queued', '» and then? · after this run', 'follow-up'],
  ['steered', '» and then? · steers at the next step', 'steer'],
] as const)('a message that was %s is above the composer until it is delivered', async (outcome, notice, delivery) => {
  await using chat = startChat()
  const { terminal, handle } = chat
  handle.reply = (op) => (op === 'prompt' ? { outcome, run_id: 'run-1', message_id: 'm-1' } : undefined)
  handle.startRun()
  send(chat, 'and then?')
  const waiting = { id: 'm-1', delivery, message: 'and then?', imageIds: [], queuedAt: '', held: false }
  handle.setState('queue', { queueLength: 1, total: 1, hold: null, messages: [waiting] })
  await terminal.waitFor(notice)
  handle.streamText('answer', 'Still at it.')
  await terminal.waitFor('Still at it.')
  expect(terminal.screen().join('\n')).toContain(notice)
  handle.setState('queue', { queueLength: 0, total: 0, hold: null, messages: [] })
  await terminal.waitFor((screen) => !screen.includes(notice))
})

test('Up takes the last queued message back into the composer', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  const message = (id: string, text: string): StateValues['queue']['messages'][number] => ({
    id,
    delivery: 'follow-up',
    message: text,
    imageIds: [],
    queuedAt: '',
    held: false,
  })
  handle.setState('queue', {
    queueLength: 5,
    total: 5,
    hold: null,
    messages: ['one', 'two', 'three', 'four', 'five'].map((text) => message(`m-${text}`, text)),
  })
  const shown = await terminal.waitFor('… 2 more messages · Ctrl-Q shows all')
  expect(shown).toMatch(/» one .*\n » two .*\n » three /)
  terminal.press(keys.up)
  await terminal.waitFor(/^ five/m)
  expect(handle.calls).toEqual([{ op: 'queue.remove', args: { id: 'm-five' } }])
})

test('a stream that has stalled says how long nothing came', async () => {
  await using chat = startChat({ size: { columns: 100, rows: 24 } })
  const { terminal, handle, clock } = chat
  handle.startRun()
  handle.streamText('a', 'It is')
  await terminal.waitFor('It is')
  expect(terminal.screen().join('\n')).not.toContain('nothing came')
  clock.now += 12_000
  handle.setState('presence', [])
  await terminal.waitFor('nothing came for 12 s')
  handle.streamText('a', ' fine.')
  await terminal.waitFor((screen) => !screen.includes('nothing came'))
})

test('the notice that Ctrl-C quits disappears when it no longer would', async () => {
  await using chat = startChat()
  const { terminal } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(keys.ctrlC)
  await terminal.waitFor('Press Ctrl-C again to quit.')
  await terminal.waitFor((screen) => !screen.includes('Press Ctrl-C again to quit.'))
})

test('the notice of a permission mode disappears when another mode is active', async () => {
  await using chat = startChat()
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  terminal.press(keys.shiftTab)
  await terminal.waitFor('Permission mode: ask.')
  handle.setState('config', { model: null, thinkingLevel: null, mode: 'plan' })
  await terminal.waitFor((screen) => !screen.includes('Permission mode: ask.'))
})

test('the owner of the session is shown only while it is true', async () => {
  let isOwned = true
  const notices = [
    { text: 'The session runs at process 7.', while: () => isOwned },
    { text: 'No such setting: modle.' },
  ]
  await using chat = startChat({ notices })
  const { terminal, handle } = chat
  await terminal.waitFor('The session runs at process 7.')
  isOwned = false
  handle.user('hello')
  await terminal.waitFor((screen) => screen.includes('No such setting') && !screen.includes('process 7'))
})

test('a command without effect says so', async () => {
  await using chat = startChat()
  const { terminal, handle, source } = chat
  handle.reply = (op) => (op === 'resume' ? { run_id: null } : undefined)
  await terminal.waitFor('Enter sends')
  send(chat, '/resume')
  await terminal.waitFor('There is no interrupted run to resume.')
  send(chat, '/fork')
  await terminal.waitFor('There is nothing to fork yet')
  expect(source.calls).toEqual([])
  handle.user('hello')
  send(chat, '/label')
  await terminal.waitFor('There is no label to remove.')
  expect(handle.calls.filter(({ op }) => op === 'label')).toEqual([])
  send(chat, '/fork')
  await terminal.waitFor('This is a copy of the session.')
})

test('the list of models opens on the current model', async () => {
  const model = (name: string): RunningChat['source']['offered'][number] => ({
    reference: `fake/${name}`,
    provider: 'fake',
    modelId: name,
    name,
    thinkingLevels: [],
    isUsable: true,
  })
  await using chat = startChat({
    arrange: (handle, source) => {
      source.offered = ['alpha', 'beta', 'gamma'].map(model)
      handle.setState('config', { model: { provider: 'fake', modelId: 'beta' }, thinkingLevel: null, mode: null })
    },
  })
  const { terminal, handle } = chat
  await terminal.waitFor('Enter sends')
  send(chat, '/model')
  await terminal.waitFor('fake/gamma')
  expect(terminal.screen().find((row) => row.includes('›'))).toContain('fake/beta')
  terminal.press(keys.down)
  terminal.press(keys.enter)
  await terminal.waitFor('Enter sends')
  expect(handle.calls.at(-1)).toEqual({ op: 'set_model', args: { provider: 'fake', model_id: 'gamma' } })
})
