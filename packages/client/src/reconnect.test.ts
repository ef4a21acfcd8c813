import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { closeCodes } from './protocol/frames.ts'
import { Liveness, afterEnd, browserWakeUps, type ConnectionEnd } from './reconnect.ts'

const cut: ConnectionEnd = { code: 1006, reason: '', attachedMs: 0 }

describe('after the end of a connection', () => {
  test('the next attempt comes after 0.5 s, doubling to 30 s', () => {
    const delays: number[] = []
    let failures = 0
    for (let round = 0; round < 9; round++) {
      const next = afterEnd(cut, failures, () => 1)
      if (next.type === 'give-up') throw new Error(next.reason)
      delays.push(next.delayMs)
      failures = next.failures
    }
    expect(delays).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  })

  test('the delay has full jitter, so that clients do not reconnect all at once', () => {
    expect(afterEnd(cut, 3, () => 0)).toEqual({ type: 'again', delayMs: 0, failures: 4 })
    expect(afterEnd(cut, 3, () => 0.25)).toEqual({ type: 'again', delayMs: 1000, failures: 4 })
  })

  test('a connection that lasted is not a failure, one that was cut at once is', () => {
    expect(afterEnd({ ...cut, attachedMs: 5000 }, 6, () => 1)).toEqual({ type: 'again', delayMs: 500, failures: 1 })
    expect(afterEnd({ ...cut, attachedMs: 4999 }, 6, () => 1)).toEqual({ type: 'again', delayMs: 30_000, failures: 7 })
  })

  test('the server may ask for more time', () => {
    expect(afterEnd({ ...cut, retryAfterMs: 700 }, 0, () => 0.5)).toMatchObject({ delayMs: 950 })
  })

  test('there is no next attempt if it would be rejected again', () => {
    const outcomes = Object.entries(closeCodes).map(([name, code]) => [name, afterEnd({ ...cut, code }, 0, () => 0)])
    expect(outcomes.filter(([, next]) => (next as { type: string }).type === 'give-up')).toEqual([
      ['auth', { type: 'give-up', reason: 'unauthorized' }],
      ['origin', { type: 'give-up', reason: 'forbidden' }],
      ['gone', { type: 'give-up', reason: 'gone' }],
      ['replaced', { type: 'give-up', reason: 'replaced' }],
    ])
  })
})

function attached(): Liveness {
  const life = new Liveness(0)
  life.opened(0)
  life.heard(0)
  return life
}

describe('a connection', () => {
  test('has 10 s to open and 30 s to be attached', () => {
    const life = new Liveness(0)
    expect(life.next(0)).toEqual({ type: 'wait', ms: 10_000 })
    expect(life.next(10_000)).toEqual({ type: 'dead' })
    life.opened(9_000)
    expect(life.next(38_999)).toEqual({ type: 'wait', ms: 1 })
    expect(life.next(39_000)).toEqual({ type: 'dead' })
  })

  test('is pinged every 15 s, regardless of other frames', () => {
    const life = attached()
    life.heard(14_000)
    expect(life.next(14_000)).toEqual({ type: 'wait', ms: 1_000 })
    expect(life.next(15_000)).toEqual({ type: 'ping' })
  })

  test('is dead 5 s after a ping without any frame', () => {
    const life = attached()
    life.pinged(15_000)
    expect(life.next(15_000)).toEqual({ type: 'wait', ms: 5_000 })
    // A second ping does not extend the deadline.
    life.pinged(18_000)
    expect(life.next(20_000)).toEqual({ type: 'dead' })
  })

  test('is alive when any frame arrives', () => {
    const life = attached()
    life.pinged(15_000)
    life.heard(19_999)
    expect(life.next(20_000)).toEqual({ type: 'wait', ms: 10_000 })
  })

  test('is silent after 20 s', () => {
    const life = attached()
    expect([life.isSilent(19_999), life.isSilent(20_000)]).toEqual([false, true])
  })
})

test('a browser checks its connection when the network goes or comes, and when the page is shown', () => {
  const page = new EventTarget() as EventTarget & { document?: EventTarget & { visibilityState?: string } }
  page.document = Object.assign(new EventTarget(), { visibilityState: 'visible' })
  vi.stubGlobal('document', page.document)
  for (const name of ['addEventListener', 'removeEventListener'] as const)
    vi.stubGlobal(name, EventTarget.prototype[name].bind(page))
  onTestFinished(() => void vi.unstubAllGlobals())
  const wake = vi.fn<() => void>()
  const stop = browserWakeUps(wake)
  const names = ['offline', 'online', 'pageshow', 'focus']
  for (const name of names) page.dispatchEvent(new Event(name))
  expect(wake).toHaveBeenCalledTimes(names.length)
  page.document.dispatchEvent(new Event('visibilitychange'))
  expect(wake).toHaveBeenCalledTimes(names.length + 1)
  stop()
  for (const name of names) page.dispatchEvent(new Event(name))
  expect(wake).toHaveBeenCalledTimes(names.length + 1)
})
