import { describe, expect, test } from 'vitest'
import { Inbox } from './inbox.ts'

describe('inbox', () => {
  test('an added message is queued as given, and only once', () => {
    const inbox = new Inbox()
    inbox.change({ action: 'add', id: 'a', message: 'one', image_ids: ['i', 7], queued_at: 't', client_id: 'c' })
    inbox.change({ action: 'add', id: 'a', message: 'again' })
    inbox.change({ action: 'add', id: 'b', delivery: 'steer' })
    inbox.change({ action: 'add', message: 'no id' })
    expect(inbox.messages).toEqual([
      { id: 'a', delivery: 'follow-up', message: 'one', imageIds: ['i'], queuedAt: 't', clientId: 'c', held: false },
      { id: 'b', delivery: 'steer', message: '', imageIds: [], queuedAt: '', held: false },
    ])
  })

  test('an edit changes what it names and keeps the rest', () => {
    const inbox = filled('a', 'b')
    inbox.change({ action: 'edit', id: 'a', message: 'new', delivery: 'steer', image_ids: ['x'] })
    inbox.change({ action: 'edit', id: 'b', delivery: 'nonsense', message: 5 })
    inbox.change({ action: 'edit', id: 'gone', message: 'ignored' })
    expect(inbox.get('a')).toMatchObject({ message: 'new', delivery: 'steer', imageIds: ['x'] })
    expect(inbox.get('b')).toMatchObject({ message: 'b', delivery: 'follow-up', imageIds: [] })
  })

  test.each([
    ['c', 'a', ['c', 'a', 'b']],
    ['a', null, ['b', 'c', 'a']],
    ['a', 'gone', ['b', 'c', 'a']],
    ['b', 'b', ['a', 'b', 'c']],
    ['gone', 'a', ['a', 'b', 'c']],
  ])('moving %s before %s gives %j', (id, beforeId, order) => {
    const inbox = filled('a', 'b', 'c')
    inbox.change({ action: 'move', id, before_id: beforeId })
    expect(inbox.messages.map((message) => message.id)).toEqual(order)
  })

  test('a release or a prompt releases messages queued before it, not later ones', () => {
    const inbox = filled('a', 'b')
    const released = (): string | undefined => inbox.next('follow-up', { onlyReleased: true })?.id
    expect(released()).toBeUndefined()
    inbox.change({ action: 'release', id: 'b' })
    expect(released()).toBe('b')
    inbox.change({ action: 'hold', id: 'b' })
    expect(released()).toBeUndefined()
    inbox.change({ action: 'release' })
    inbox.change({ action: 'add', id: 'c', message: 'c' })
    expect(released()).toBe('a')
    const again = new Inbox()
    again.restore(inbox.toCheckpoint())
    for (const each of [inbox, again]) each.delivered('a')
    expect(released()).toBeUndefined()
    expect(again.toCheckpoint()).toEqual(inbox.toCheckpoint())
    inbox.prompted()
    inbox.delivered('b')
    expect(released()).toBe('c')
  })

  test('a held message is skipped, and a held inbox delivers nothing', () => {
    const inbox = filled('a', 'b')
    inbox.change({ action: 'hold', id: 'a' })
    expect(inbox.next('follow-up')?.id).toBe('b')
    inbox.change({ action: 'hold' })
    expect(inbox.hold).toEqual({ reason: 'held' })
    expect(inbox.next('follow-up')).toBeUndefined()
    inbox.change({ action: 'release' })
    inbox.change({ action: 'release', id: 'a' })
    expect(inbox.next('follow-up')?.id).toBe('a')
    expect(inbox.next('steer')).toBeUndefined()
  })

  test('removing, delivering and clearing remove messages', () => {
    const inbox = filled('a', 'b', 'c')
    inbox.change({ action: 'remove', id: 'b' })
    inbox.delivered('a')
    expect(inbox.messages.map(({ id }) => id)).toEqual(['c'])
    inbox.change({ action: 'clear' })
    expect(inbox.messages).toEqual([])
  })

  test('an action of a newer version changes nothing', () => {
    const inbox = filled('a')
    inbox.change({ action: 'explode', id: 'a' })
    expect(inbox.messages.map(({ id }) => id)).toEqual(['a'])
  })

  test('a completed run only lifts the hold for lost lines; any other end sets one', () => {
    const inbox = filled('a')
    inbox.linesLost()
    inbox.runEnded('completed')
    expect(inbox.hold).toBeNull()
    inbox.change({ action: 'hold', reason: 'by hand' })
    inbox.runEnded('completed')
    expect(inbox.hold).toEqual({ reason: 'by hand' })
    inbox.prompted()
    inbox.runEnded('aborted')
    expect(inbox.hold).toEqual({ reason: 'the last run was aborted' })
    inbox.runEnded(undefined)
    expect(inbox.hold).toEqual({ reason: 'the last run was ended' })
  })
})

function filled(...ids: string[]): Inbox {
  const inbox = new Inbox()
  for (const id of ids) inbox.change({ action: 'add', id, message: id })
  return inbox
}
