import { FakeClock } from '@tapetree/agent/testing'
import { describe, expect, test } from 'vitest'
import { FailureLimiter } from './failure-limiter.ts'

describe('the failure limiter', () => {
  test('limits the failures of one address within its window, and of no other', () => {
    const clock = new FakeClock()
    const limiter = new FailureLimiter(clock, { max: 3, windowMs: 1000 })
    expect([1, 2, 3, 4].map(() => limiter.fail('10.0.0.1'))).toEqual([0, 0, 0, 1000])
    expect(limiter.fail('10.0.0.2')).toBe(0)
    clock.advance(400)
    expect(limiter.fail('10.0.0.1')).toBe(600)
    clock.advance(600)
    expect(limiter.fail('10.0.0.1')).toBe(0)
  })

  test('counts the IPv6 addresses of one network as one', () => {
    const limiter = new FailureLimiter(new FakeClock(), { max: 1 })
    expect(limiter.fail('2001:db8:1:2::5')).toBe(0)
    expect(limiter.fail('2001:db8:1:2:ffff:1:2:3')).toBeGreaterThan(0)
    expect(limiter.fail('2001:db8:1:3::5')).toBe(0)
    expect(limiter.fail('::1')).toBe(0)
    expect(limiter.fail('::1')).toBeGreaterThan(0)
  })

  test('remembers a limited number of addresses', () => {
    const limiter = new FailureLimiter(new FakeClock(), { max: 1 })
    limiter.fail('1.2.3.4')
    for (let index = 0; index < 10_000; index++) limiter.fail(`10.${index >> 8}.${index & 255}.1`)
    expect(limiter.fail('1.2.3.4')).toBe(0)
  })
})
