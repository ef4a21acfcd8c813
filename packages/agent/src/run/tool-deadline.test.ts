import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { SessionSuspended } from '../tools/tool.ts'
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

test('a tool that continues without this process has no result', async () => {
  const suspending = new AbortController()
  const { signal } = suspending
  const output = runWithDeadline(
    { deadlineMs: 60_000, clock: new FakeClock(), signal, stopped: () => 'stopped' },
    () => {
      suspending.abort(new SessionSuspended())
      return Promise.reject(signal.reason as Error)
    },
  )
  await expect(output).rejects.toThrow(SessionSuspended)
})
