import { expect, test } from 'vitest'
import { LiveOutput } from './live-output.ts'

test('a character that comes in two pieces is told once it is whole', () => {
  const told: string[] = []
  const live = new LiveOutput((text) => void told.push(text))
  const bytes = Buffer.from('aü')
  live.take({ offset: 0, bytes: bytes.subarray(0, 1) })
  live.take({ offset: 1, bytes: bytes.subarray(1, 2) })
  live.take({ offset: 2, bytes: bytes.subarray(2) })
  expect(told).toEqual(['a', 'ü'])
})

test('where something was missed the watcher is told how much', () => {
  const told: string[] = []
  const live = new LiveOutput((text) => void told.push(text))
  live.take({ offset: 0, bytes: Buffer.from([0x61, 0xc3]) })
  live.take({ offset: 1002, bytes: Buffer.from('b') })
  expect(told).toEqual(['a', '\n[1,000 bytes skipped]\n', 'b'])
})
