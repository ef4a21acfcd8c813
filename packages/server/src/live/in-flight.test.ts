import { limits } from '@tapetree/client/protocol'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InFlight, textFrame, fitFrame, type FlyingPart } from './in-flight.ts'

interface Frame {
  type: 'delta' | 'partial'
  data: { off: number; text: string }
}

/** A reader that was sent all text before `end`. */
class Reader {
  end = 0
  text = ''

  read(flying: FlyingPart): void {
    for (let frame = textFrame(flying, this.end); frame; frame = textFrame(flying, this.end)) {
      const { type, data } = JSON.parse(frame.bytes.toString()) as Frame
      expect(type).toBe(data.off > this.end ? 'partial' : 'delta')
      this.text = this.text.padEnd(data.off, '?').slice(0, data.off) + data.text
      this.end = frame.end
    }
  }
}

describe('text in flight', () => {
  test('fits into frames, even if all of it must be escaped', () => {
    const inFlight = new InFlight()
    const said = '\u001b'.repeat(3 * limits.maxTextLength)
    inFlight.take({ type: 'delta', item: 'item', part: 0, kind: 'tool_output', off: 0, text: said })
    const [flying] = inFlight.parts()
    const sizes: number[] = []
    let end = 0
    for (let frame = textFrame(flying as FlyingPart, end); frame; frame = textFrame(flying as FlyingPart, end)) {
      sizes.push(frame.bytes.length)
      end = frame.end
    }
    expect(end).toBe(said.length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(limits.maxFrameBytes)
  })

  test('is the same for readers that join and read at any time', () => {
    // Surrogate pairs are split now and then.
    const text = fc.constantFrom('word ', '😀', '\ud83d', '\ude00', 'x'.repeat(1000))
    const step = fc.record({ text, someoneComes: fc.boolean(), whoLooks: fc.integer() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const inFlight = new InFlight()
        const readers = [new Reader()]
        let said = ''
        const say = (text: string): FlyingPart => {
          inFlight.take({ type: 'delta', item: 'item', part: 0, kind: 'text', off: said.length, text })
          said += text
          return [...inFlight.parts()][0] as FlyingPart
        }
        for (const { text, someoneComes, whoLooks } of steps) {
          const flying = say(text)
          if (someoneComes) readers.push(new Reader())
          for (const [index, reader] of readers.entries()) if ((whoLooks >> (index % 31)) & 1) reader.read(flying)
        }
        const flying = say('.')
        for (const reader of readers) reader.read(flying)
        expect(readers.every((reader) => reader.text === said)).toBe(true)
      }),
    )
  })

  test('holds only the newest text of an endless part', () => {
    const inFlight = new InFlight()
    const piece = 'x'.repeat(60_000)
    for (let index = 0; index < 20; index++) {
      inFlight.take({
        type: 'delta',
        item: 'item',
        part: 0,
        kind: 'tool_output',
        off: index * piece.length,
        text: piece,
      })
    }
    const [flying] = inFlight.parts() as Iterable<FlyingPart>
    const late = new Reader()
    late.read(flying as FlyingPart)
    expect(late.end).toBe(20 * piece.length)
    expect(late.text.replaceAll('?', '').length).toBeLessThanOrEqual(512 * 1024)
    expect(late.text.startsWith('?')).toBe(true)
  })

  test('starts over after a hole', () => {
    const inFlight = new InFlight()
    const reader = new Reader()
    const say = (off: number, text: string): FlyingPart => {
      inFlight.take({ type: 'delta', item: 'item', part: 0, kind: 'text', off, text })
      return [...inFlight.parts()][0] as FlyingPart
    }
    reader.read(say(0, 'abc'))
    reader.read(say(5, 'fgh'))
    reader.read(say(8, 'i'))
    expect([reader.text, reader.end]).toEqual(['abc??fghi', 9])
  })
})

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
