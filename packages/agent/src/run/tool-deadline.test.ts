import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { runWithDeadline } from './tool-calls.ts'

test.each([60_000, Infinity])(
  'a tool that has returned leaves no listeners behind, with a deadline of %d ms',
  async (deadlineMs) => {
    const { signal } = new AbortController()
    const clock = new FakeClock()
    const output = await runWithDeadline({ deadlineMs, clock, signal, stopped: () => 'stopped' }, () =>
      Promise.resolve({ content: 'fine' }),
    )
    expect(output).toEqual({ content: 'fine' })
    expect(getEventListeners(signal, 'abort')).toEqual([])
  },
)
