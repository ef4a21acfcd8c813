import { describe, expect, test } from 'vitest'
import { FakeClock } from '../testing/fake-clock.ts'
import { IdleTimeout } from './idle-timeout.ts'
import { ModelError } from './model.ts'

describe('IdleTimeout', () => {
  test('aborts with its own error after the maximum silence', async () => {
    const { clock, timeout } = start(1000)
    clock.advance(999)
    await settle()
    expect(timeout.signal.aborted).toBe(false)
    clock.advance(1)
    await settle()
    expect(timeout.signal.reason).toBeInstanceOf(ModelError)
    expect(timeout.signal.reason).toMatchObject({ kind: 'network', message: 'acme sent nothing for 1 seconds.' })
  })

  test('restarts with every part', async () => {
    const { clock, timeout } = start(1000)
    for (let count = 0; count < 5; count += 1) {
      clock.advance(900)
      await settle()
      timeout.touch()
    }
    expect(timeout.signal.aborted).toBe(false)
    clock.advance(1000)
    await settle()
    expect(timeout.signal.aborted).toBe(true)
  })

  test('a shorter limit applies at once, and not only after the longer one', async () => {
    const { clock, timeout } = start(1000)
    timeout.touch(100)
    await settle()
    clock.advance(100)
    await settle()
    expect(timeout.signal.aborted).toBe(true)
  })

  test('a longer limit applies at once', async () => {
    const { clock, timeout } = start(100)
    timeout.touch(1000)
    await settle()
    clock.advance(999)
    await settle()
    expect(timeout.signal.aborted).toBe(false)
  })

  test('the time of a slow reader does not count', async () => {
    const { clock, timeout } = start(1000)
    timeout.pause()
    for (let count = 0; count < 5; count += 1) {
      clock.advance(1000)
      await settle()
    }
    timeout.touch()
    clock.advance(999)
    await settle()
    expect(timeout.signal.aborted).toBe(false)
  })

  test('ends when it is closed, and leaves no timer', async () => {
    const { clock, timeout } = start(1000)
    timeout.close()
    await settle()
    clock.advance(5000)
    await settle()
    expect(timeout.signal.aborted).toBe(false)
    expect(clock.waits).toEqual([])
  })
})

function start(limitMs: number): { clock: FakeClock; timeout: IdleTimeout } {
  const clock = new FakeClock()
  return { clock, timeout: new IdleTimeout({ clock, provider: 'acme', limitMs }) }
}

/** Lets pending microtasks run. */
async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
