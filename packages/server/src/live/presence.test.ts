import { FakeClock } from '@tapetree/agent/testing'
import { limits } from '@tapetree/client/protocol'
import { describe, expect, test, vi } from 'vitest'
import { Presence } from './presence.ts'

function crowd(size: number): { presence: Presence; clock: FakeClock; changed: () => number } {
  const clock = new FakeClock()
  const changed = vi.fn<() => void>()
  const presence = new Presence(clock, changed)
  for (let index = 0; index < size; index++) presence.join({ id: `client-${index}` })
  return { presence, clock, changed: () => changed.mock.calls.length }
}

function names(presence: Presence): string[] {
  return presence.list().map((each) => (each as { id: string }).id)
}

describe('presence', () => {
  test('is sent at once while there are few clients', () => {
    const { presence, changed } = crowd(3)
    presence.leave('client-1')
    expect(names(presence)).toEqual(['client-0', 'client-2'])
    expect(changed()).toBe(4)
  })

  test('lists only the first of a crowd', () => {
    const { presence } = crowd(1000)
    expect(names(presence)).toEqual(Array.from({ length: 100 }, (_, index) => `client-${index}`))
  })

  test('is sent once a second for a crowd, however many come and go', async () => {
    const { presence, clock, changed } = crowd(1000)
    const before = changed()
    for (let index = 0; index < 500; index++) presence.leave(`client-${index}`)
    expect(changed()).toBe(before)
    clock.advance(1000)
    await vi.waitFor(() => expect(changed()).toBe(before + 1))
    expect(names(presence)[0]).toBe('client-500')
  })

  test('restores a client at its first frame after its lease expired, unless its connection is closed', async () => {
    const { presence, clock } = crowd(2)
    presence.renew('client-0', { visibility: 'hidden' })
    clock.advance(limits.presenceLeaseMs)
    await vi.waitFor(() => expect(names(presence)).toEqual([]))
    presence.leave('client-1')
    for (const id of ['client-0', 'client-1']) presence.renew(id)
    expect(presence.list()).toEqual([{ id: 'client-0', visibility: 'hidden', typing: false }])
    await clock.waited()
    clock.advance(limits.presenceLeaseMs)
    await vi.waitFor(() => expect(names(presence)).toEqual([]))
  })

  test('drops a silent crowd after the lease', async () => {
    const { presence, clock } = crowd(1000)
    clock.advance(limits.presenceLeaseMs)
    await vi.waitFor(() => expect(names(presence)).toEqual([]))
  })
})
