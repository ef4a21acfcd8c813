import { script } from '@tapetree/agent/testing'
import { afterEach, expect, test } from 'vitest'
import type { LiveSessions } from '../live/live-sessions.ts'
import { notReadyReason } from './readiness.ts'
import { observedSessions } from './testing/observed-session.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('a server is ready until it shuts down', async () => {
  const sessions = observedSessions({ says: script() })
  cleanUps.push(() => sessions.close())
  const closing = new AbortController()
  const facts = { tenants: new Map([['local', sessions]]), closing: closing.signal }
  expect(notReadyReason(facts)).toBeUndefined()
  closing.abort()
  expect(notReadyReason(facts)).toBe('The server is shutting down.')
})

test('a server full of busy sessions is not ready, and one with idle ones is', async () => {
  const go = Promise.withResolvers<void>()
  const full = observedSessions({
    says: script()
      .do(() => go.promise)
      .text('done'),
    maxLive: 1,
  })
  cleanUps.push(() => full.close())
  const facts = { tenants: new Map<string, LiveSessions>([['local', full]]), closing: new AbortController().signal }
  const live = await full.get(await full.create({}))
  expect(notReadyReason(facts)).toBeUndefined()
  await live.perform('c', 'me', { op: 'prompt', args: { text: 'work' } })
  expect(notReadyReason(facts)).toBe('The limit of live sessions is reached.')
  go.resolve()
})
