import { describe, expect, test } from 'vitest'
import { Liveness } from './liveness.ts'

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
