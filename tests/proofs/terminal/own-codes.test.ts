import { describe, expect, test } from 'vitest'
import { recorded, streamed, HostileCases } from './hostile-case.ts'
import { scan } from './own-codes.ts'
import { sequenceClasses } from './sequences.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('scan', () => {
  test.each(Object.entries(sequenceClasses).flatMap(([name, all]) => all.map((sequence) => [name, sequence])))(
    'finds what reaches a terminal as it is: %s %j',
    (_, sequence) => {
      expect(scan(bytes(`B7b${sequence}e7E`)).problems).not.toEqual([])
    },
  )

  test('lets our own colours and screen control pass, and sees which cases came', () => {
    const own =
      '\u001b[?2026h\u001b[3;1H\u001b[2K\u001b[1;38;5;111mB7b␛[2Je7E\u001b[22;39m\u001b[0m\u001b]8;;\u0007\r\n\u001b[?2026l'
    expect(scan(bytes(own))).toEqual({ arrived: new Set([7]), problems: [] })
  })

  test('finds bytes that are no UTF-8', () => {
    expect(scan(Uint8Array.of(0x61, 0x9b, 0x32, 0x4a)).problems).toContain(
      'bytes that are no UTF-8 reached the terminal',
    )
  })
})

test('a case is a sequence and a cut: as a stream brings it, and as it is stored', () => {
  const cases = new HostileCases(() => 0).take(2)
  expect(cases.map(streamed).map((pieces) => pieces.join(''))).toEqual(
    cases.map(({ number, pieces }) => `B${number}b${pieces.join('')}e${number}E`),
  )
  expect(recorded({ number: 1, sequenceClass: '', pieces: ['a', 'b'] })).toBe('B1bae1E B1bbe1E')
})
