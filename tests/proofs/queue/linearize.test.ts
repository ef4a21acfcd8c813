import { expect, test } from 'vitest'
import { checkLinearizable, type Operation } from './linearize.ts'
import type { QueueLine } from './queue-model.ts'

const add = (seq: number, id: string): QueueLine => ({
  seq,
  type: 'submission',
  cause: { cmd: `add-${id}` },
  submission: { action: 'add', id, delivery: 'follow-up', message: id },
})
const deliver = (seq: number, id: string): QueueLine => ({
  seq,
  type: 'message',
  message: { role: 'user', submission_id: id, content: [{ text: { content: id } }] },
})
const remove = (id: string, sentAt: number, at: number, ok: boolean): Operation => ({
  id: `remove-${id}`,
  op: 'queue.remove',
  args: { id },
  sentAt,
  answer: { ack: { id: `remove-${id}`, ok }, at },
})

test('a log that delivers out of order, twice or what was never added is not the order of anything', () => {
  expect(checkLinearizable([add(2, 'a'), add(3, 'b'), deliver(4, 'a')], [])).toEqual([])
  expect(checkLinearizable([add(2, 'a'), add(3, 'b'), deliver(4, 'b')], [])).toEqual(['line 4 delivers b before a'])
  expect(checkLinearizable([add(2, 'a'), deliver(3, 'a'), deliver(4, 'a')], [])).toEqual([
    'line 4 delivers a, which does not wait',
  ])
})

test('a refusal is right only if its message was gone at some moment while it was asked', () => {
  const added: Operation = {
    id: 'add-b',
    op: 'queue.add',
    args: {},
    sentAt: 9,
    answer: { ack: { id: 'add-b', ok: true }, at: 10 },
  }
  const lines = [add(2, 'a'), add(3, 'b'), deliver(4, 'a')]
  expect(checkLinearizable(lines, [remove('a', 1, 20, false), added])).toEqual([])
  // Answered before b was even sent, when a still waited.
  expect(checkLinearizable(lines, [remove('a', 1, 8, false), added])).toHaveLength(1)
})

test('what was answered stands before what was sent later', () => {
  const first: Operation = {
    id: 'add-a',
    op: 'queue.add',
    args: {},
    sentAt: 1,
    answer: { ack: { id: 'add-a', ok: true }, at: 2 },
  }
  const second: Operation = {
    id: 'add-b',
    op: 'queue.add',
    args: {},
    sentAt: 3,
    answer: { ack: { id: 'add-b', ok: true }, at: 4 },
  }
  expect(checkLinearizable([add(2, 'a'), add(3, 'b')], [first, second])).toEqual([])
  expect(checkLinearizable([add(2, 'b'), add(3, 'a')], [first, second])).not.toEqual([])
})
