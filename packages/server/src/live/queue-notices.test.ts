import type { WaitingMessage } from '@tapetree/session'
import type { Line, SubmissionChange } from '@tapetree/session/format'
import { describe, expect, test } from 'vitest'
import { QueueNotices } from './queue-notices.ts'

const base = { id: 'line', seq: 1, timestamp: '2026-01-01T00:00:00.000Z' }
const change = (submission: SubmissionChange): Line => ({ ...base, type: 'submission', submission })
const delivered = (submissionId: string): Line => ({
  ...base,
  type: 'message',
  parentId: null,
  message: { role: 'user', content: [], submissionId },
})
const waiting = (id: string, delivery: WaitingMessage['delivery'] = 'follow-up'): WaitingMessage => ({
  id,
  delivery,
  message: id,
  imageIds: [],
  queuedAt: '',
  held: false,
})
const add = (id: string, delivery: WaitingMessage['delivery'] = 'follow-up'): Line => {
  const { held: _, ...added } = waiting(id, delivery)
  return change({ action: 'add', ...added })
}
const updated = (action: string, message_id: string | null, queue_length: number): unknown => ({
  type: 'queue_updated',
  data: { queue_length, action, message_id },
})

describe('queue notices of lines', () => {
  test('each message added and removed, with the number left', () => {
    const notices = new QueueNotices([waiting('a')])
    expect(notices.take(add('b'))).toEqual([updated('added', 'b', 2)])
    expect(notices.take(delivered('a'))).toEqual([updated('removed', 'a', 1)])
    expect(notices.take(change({ action: 'remove', id: 'b' }))).toEqual([updated('removed', 'b', 0)])
  })

  test('nothing about steers, nor about messages that were not queued', () => {
    const notices = new QueueNotices([waiting('s', 'steer')])
    expect(notices.take(add('t', 'steer'))).toEqual([])
    for (const id of ['s', 't', 'unknown']) expect(notices.take(delivered(id))).toEqual([])
    expect(notices.take(change({ action: 'remove', id: 't' }))).toEqual([])
    expect(notices.take(change({ action: 'clear', delivery: 'steer' }))).toEqual([])
  })

  test('a message that becomes a steer leaves the queue, and one that stops being one enters it', () => {
    const notices = new QueueNotices([waiting('a')])
    expect(notices.take(change({ action: 'edit', id: 'a', delivery: 'steer' }))).toEqual([updated('removed', 'a', 0)])
    expect(notices.take(change({ action: 'edit', id: 'a', delivery: 'follow-up' }))).toEqual([updated('added', 'a', 1)])
    expect(notices.take(change({ action: 'edit', id: 'a', message: 'other' }))).toEqual([])
  })

  test('that all were cleared, and nothing about holding, releasing and moving', () => {
    const notices = new QueueNotices([waiting('a'), waiting('b')])
    expect(notices.take(change({ action: 'hold' }))).toEqual([])
    expect(notices.take(change({ action: 'release', id: 'a' }))).toEqual([])
    expect(notices.take(change({ action: 'move', id: 'b', beforeId: 'a' }))).toEqual([])
    expect(notices.take(change({ action: 'clear' }))).toEqual([updated('cleared', null, 0)])
  })
})
