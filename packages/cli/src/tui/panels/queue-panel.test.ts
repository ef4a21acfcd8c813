import type { ListedMessage, StateValues } from '@tapetree/client'
import { expect, test } from 'vitest'
import { QueuePanel } from './queue-panel.ts'
import { golden, plainTheme, press } from './testing/panel-driver.ts'

test('queued messages are shown with kind and hold, and whether some are cut or not listed', async () => {
  const messages = [
    waiting('a', { message: 'now use tabs', delivery: 'steer' }),
    waiting('b', { message: 'then write\nthe tests', held: true, imageIds: ['i'] }),
    waiting('c', { message: 'a very long text', truncated: true }),
  ]
  const { panel } = open({ messages, total: 5, hold: { reason: 'the last run was failed' } })
  press(panel, 'down')
  await expect(golden(panel)).toMatchFileSnapshot('golden/queue-panel.txt')
})

test('a message is edited in place', async () => {
  const { panel, calls } = open()
  press(panel, 'down', 'enter', ' please')
  await expect(golden(panel)).toMatchFileSnapshot('golden/queue-panel-editing.txt')
  press(panel, 'enter')
  expect(calls).toEqual([['edit', 'b', 'text of b please']])
})

test('messages move, and the moved one stays selected', () => {
  const { panel, calls } = open()
  press(panel, 'shift+down')
  panel.update(queueOf([waiting('b'), waiting('a'), waiting('c')]))
  press(panel, 'shift+down', 'shift+up')
  expect(calls).toEqual([
    ['move', 'a', 'c'],
    ['move', 'a', null],
    ['move', 'a', 'b'],
  ])
})

test('one or all are held and released, and a follow-up becomes a steer', () => {
  const { panel, calls } = open()
  press(panel, 'h', 'H', 's')
  panel.update({ ...queueOf([waiting('a', { held: true, delivery: 'steer' })]), hold: { reason: 'held' } })
  press(panel, 'h', 'H', 's')
  expect(calls).toEqual([
    ['hold', 'a'],
    ['hold', undefined],
    ['delivery', 'a', 'steer'],
    ['release', 'a'],
    ['release', undefined],
    ['delivery', 'a', 'follow-up'],
  ])
})

test('a message is removed without a question, and can be restored whole', () => {
  const { panel, calls } = open({ messages: [waiting('a', { message: 'cut', truncated: true })] })
  press(panel, 'x')
  expect(panel.render(80).join('\n')).toContain('p restores it')
  panel.update(queueOf([]))
  press(panel, 'p')
  const pasted = { message: 'all of a', imageIds: [], delivery: 'follow-up' }
  expect(calls).toEqual([
    ['remove', 'a'],
    ['paste', pasted],
  ])
})

test('text edited while its message is delivered is not lost', () => {
  const { panel, calls } = open()
  press(panel, 'enter', '!')
  panel.update(queueOf([waiting('b')]))
  expect(panel.render(80).join('\n')).toContain('delivered or removed while you edited it')
  press(panel, 'enter')
  expect(calls).toEqual([['paste', { message: 'text of a!', imageIds: [], delivery: 'follow-up' }]])
})

function open(changes: Partial<StateValues['queue']> = {}) {
  const calls: unknown[][] = []
  const panel = new QueuePanel({
    theme: plainTheme,
    queue: { ...queueOf([waiting('a'), waiting('b'), waiting('c')]), ...changes },
    fullText: (id) => `all of ${id}`,
    onEdit: (id, message) => calls.push(['edit', id, message]),
    onMove: (id, beforeId) => calls.push(['move', id, beforeId]),
    onHold: (id) => calls.push(['hold', id]),
    onRelease: (id) => calls.push(['release', id]),
    onRemove: (id) => calls.push(['remove', id]),
    onPaste: (removed) => calls.push(['paste', removed]),
    onDelivery: (id, delivery) => calls.push(['delivery', id, delivery]),
    onClose: () => calls.push(['close']),
  })
  return { panel, calls }
}

function queueOf(messages: ListedMessage[]): StateValues['queue'] {
  return { queueLength: messages.length, total: messages.length, hold: null, messages }
}

function waiting(id: string, changes: Partial<ListedMessage> = {}): ListedMessage {
  return { id, delivery: 'follow-up', message: `text of ${id}`, imageIds: [], queuedAt: '', held: false, ...changes }
}
