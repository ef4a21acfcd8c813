import { limits } from '@tapetree/client/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RecentLines, type OutgoingLine } from './recent-lines.ts'

function line(seq: number, { count = 1, size = 10 } = {}): OutgoingLine {
  return { seq, crc: `crc-${seq}`, count, bytes: Buffer.alloc(size) }
}

describe('the newest lines of a log', () => {
  test('are found by the line before them, also if some were lost', () => {
    const added = fc.array(
      fc.record({ count: fc.constantFrom(1, 1, 1, 5), size: fc.constantFrom(1, 100_000, 190_000) }),
    )
    fc.assert(
      fc.property(added, fc.nat(50), (all, firstSeq) => {
        const lines = new RecentLines()
        let seq = firstSeq + 1
        let kept: OutgoingLine[] = []
        for (const options of all) {
          const each = line(seq, options)
          lines.add(each)
          kept.push(each)
          while (bytesOf(kept) > limits.maxBehindBytes) kept = kept.slice(1)
          seq += options.count
        }
        const first = kept[0]?.seq ?? Infinity
        for (let asked = Math.max(0, firstSeq - 2); asked <= seq + 1; asked++) {
          expect(lines.after(asked)).toBe(asked + 1 < first ? undefined : kept.find((each) => each.seq > asked))
          expect(lines.crcOf(asked)).toBe(kept.find((each) => each.seq === asked)?.crc)
          expect(lines.reaches(asked)).toBe(asked + 1 >= first)
        }
      }),
    )
  })

  test('take in older ones that lead up to them, as far as there is room', () => {
    const lines = new RecentLines()
    lines.addOlder([line(1)])
    lines.add(line(10))
    lines.addOlder([line(7), line(8)])
    expect(lines.reaches(8)).toBe(false)
    lines.addOlder([line(5, { size: limits.maxBehindBytes }), line(6), line(7, { count: 3 }), line(10)])
    expect([lines.reaches(4), lines.after(5)?.seq, lines.after(6)?.seq, lines.after(7)?.seq]).toEqual([false, 6, 7, 10])
    for (let seq = 11; seq <= limits.maxBehindLines + 7; seq++) lines.add(line(seq))
    expect([lines.reaches(5), lines.reaches(6), lines.lastSeq]).toEqual([true, true, limits.maxBehindLines + 7])
    lines.add(line(limits.maxBehindLines + 8))
    lines.addOlder([line(1), line(2), line(3), line(4), line(5)])
    expect(lines.reaches(5)).toBe(false)
  })

  test('are limited to what a client may be behind', () => {
    const lines = new RecentLines()
    for (let seq = 1; seq <= 3 * limits.maxBehindLines; seq++) lines.add(line(seq))
    const oldest = 2 * limits.maxBehindLines + 1
    expect([lines.after(oldest - 2), lines.after(oldest - 1)?.seq]).toEqual([undefined, oldest])
    expect(lines.after(3 * limits.maxBehindLines)).toBeUndefined()
  })
})

function bytesOf(lines: readonly OutgoingLine[]): number {
  return lines.reduce((sum, { bytes }) => sum + bytes.length, 0)
}
