import { limits } from '@tapetree/client'
import { expect, test } from 'vitest'
import { fitFrame } from './fit-frame.ts'

const shorten = (text: string): string => text.slice(0, 10)

test('items that fit are unchanged', () => {
  expect(fitFrame(['a'.repeat(1000), 'b'], { shorten })).toEqual(['a'.repeat(1000), 'b'])
})

test('if not all fit, each is shortened', () => {
  const long = Array.from({ length: 20 }, () => 'a'.repeat(10_000))
  expect(fitFrame(long, { shorten })).toEqual(long.map(shorten))
})

test('if even that does not fit, the first are listed', () => {
  const many = Array.from({ length: 100_000 }, (_, index) => `number ${index}`)
  const listed = fitFrame(many, { shorten })
  expect(listed).toEqual(many.slice(0, listed.length).map(shorten))
  expect(Buffer.byteLength(JSON.stringify(listed))).toBeLessThanOrEqual(limits.maxFrameBytes / 4 + 1)
})

test('an item that is too long for a frame is not listed', () => {
  expect(fitFrame(['\u0000'.repeat(limits.maxFrameBytes)])).toEqual([])
})
