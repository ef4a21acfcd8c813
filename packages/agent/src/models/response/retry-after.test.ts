import { describe, expect, test } from 'vitest'
import { retryAfterMs } from './retry-after.ts'

const now = Date.parse('2026-11-20T10:00:00Z')

describe('retryAfterMs', () => {
  test.each([
    [{ 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': 'Fri, 20 Nov 2026 10:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 09:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '250' }, 250],
    [{ 'retry-after-ms': '250', 'retry-after': '20' }, 250],
    [{ 'retry-after-ms': 'soon', 'retry-after': '20' }, 20_000],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('reads %j as %s ms', (headers, expected) => {
    expect(retryAfterMs({ headers, text: '' }, now)).toBe(expected)
  })

  test.each([
    ['{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay": "34.074824224s"}', 34_075],
    ['Rate limit reached. Please try again in 7.66s. Visit your account page.', 7660],
    ['Please try again in 20ms.', 20],
    ['Please try again in 6m0s.', 360_000],
    ['Please try again in 1h2m3s.', 3_723_000],
    ['Please retry after 58 seconds.', 58_000],
    ['request reached max request: 3, please try again after 1 seconds', 1000],
    ['No deployments available for selected model, Try again in 60 seconds. Passed model=gpt-5.', 60_000],
    ['Please retry in 14.07s.', 14_070],
    ['Please try again in 2 hours, 5 minutes.', 7_500_000],
    ['Please try again in 1 minute and 30 seconds.', 60_000],
    ['Please try again in 3 days.', 259_200_000],
    ['Retry after 5', undefined],
    ['Please try again in a while.', undefined],
    ['Please try again later.', undefined],
  ])('reads %s', (text, expected) => {
    expect(retryAfterMs({ headers: {}, text }, now)).toBe(expected)
  })

  test('a header counts for more than words', () => {
    expect(retryAfterMs({ headers: { 'retry-after': '3' }, text: 'Please try again in 9s.' }, now)).toBe(3000)
  })
})
