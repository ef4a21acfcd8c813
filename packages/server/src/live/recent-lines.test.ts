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
