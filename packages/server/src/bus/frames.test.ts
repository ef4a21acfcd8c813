import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decodeFrame, encodeFrame, PieceJoiner, PieceSplitter } from './frames.ts'

describe('frames', () => {
  test('a header and bytes come back as they were', () => {
    const header = { from: '\ud800 \0 ü', id: 3 }
    for (const body of [new Uint8Array(), randomBytes(100)]) {
      const frame = decodeFrame(encodeFrame(header, body))
      expect(frame?.header).toEqual(header)
      expect(Buffer.from(frame?.body ?? []).equals(body)).toBe(true)
    }
  })

  test('other bytes are no frame', () => {
    const frame = encodeFrame({ from: 'a' })
    const others = [
      [],
      [0, 0, 0],
      [0, 0, 0, 0],
      [255, 255, 255, 255, 1],
      [...frame.subarray(0, -1)],
      [0, 0, 0, 1, 0x31],
    ]
    for (const bytes of others) expect(decodeFrame(new Uint8Array(bytes))).toBeUndefined()
  })
})

describe('pieces', () => {
  const split = (frame: Uint8Array, sender = randomBytes(8)): Uint8Array[] => [
    ...new PieceSplitter(sender).split(frame, 120),
  ]

  test('a frame is joined from pieces of the given size', () => {
    for (const length of [0, 1, 99, 100, 101, 1000, 1001]) {
      const frame = randomBytes(length)
      const pieces = split(frame)
      expect(pieces.every((piece) => piece.length <= 120)).toBe(true)
      const joiner = new PieceJoiner()
      const joined = pieces.map((piece) => joiner.push('x', piece))
      expect(joined.slice(0, -1).every((each) => each === undefined)).toBe(true)
      expect(Buffer.from(joined.at(-1) ?? [1]).equals(frame)).toBe(true)
    }
  })

  test('pieces of several senders and channels may be mixed', () => {
    const joiner = new PieceJoiner()
    const frames = [randomBytes(350), randomBytes(350), randomBytes(350)]
    const sender = randomBytes(8)
    const channels = ['x', 'x', 'y']
    const all = frames.map((frame, index) => split(frame, index === 0 ? undefined : sender))
    const joined = [0, 1, 2, 3].flatMap((place) =>
      all.map((pieces, index) => joiner.push(channels[index] ?? '', pieces[place] ?? new Uint8Array())),
    )
    expect(joined.slice(9).map((each, index) => frames[index]?.equals(each ?? new Uint8Array()))).toEqual([
      true,
      true,
      true,
    ])
  })

  test('a frame of which any piece is lost is dropped, and the next one is joined', () => {
    for (let lost = 0; lost < 4; lost += 1) {
      const joiner = new PieceJoiner()
      const splitter = new PieceSplitter(randomBytes(8))
      const damaged = [...splitter.split(randomBytes(350), 120)].toSpliced(lost, 1)
      const next = randomBytes(350)
      const whole = [...splitter.split(next, 120)]
      expect(damaged.map((piece) => joiner.push('x', piece)).every((each) => each === undefined)).toBe(true)
      expect(whole.map((piece) => joiner.push('x', piece)).at(-1)).toEqual(next)
    }
  })

  test('a repeated piece drops the frame', () => {
    const joiner = new PieceJoiner()
    const [first, second, ...others] = split(randomBytes(350)) as [Uint8Array, Uint8Array]
    const joined = [first, second, second, ...others].map((piece) => joiner.push('x', piece))
    expect(joined.every((each) => each === undefined)).toBe(true)
  })

  test('frames that are not complete take a limited memory: the oldest is dropped', () => {
    const joiner = new PieceJoiner(250)
    const frames = [randomBytes(200), randomBytes(200), randomBytes(200)]
    const all = frames.map((frame) => split(frame))
    for (const pieces of all) joiner.push('x', pieces[0] ?? new Uint8Array())
    const joined = all.map((pieces) => joiner.push('x', pieces[1] ?? new Uint8Array()))
    expect(joined).toEqual([undefined, frames[1], frames[2]])
  })

  test('other bytes are no piece', () => {
    const joiner = new PieceJoiner()
    for (const bytes of [[], [1, 2, 3], Array.from({ length: 20 }, () => 0), Array.from({ length: 30 }, () => 255)]) {
      expect(joiner.push('x', new Uint8Array(bytes))).toBeUndefined()
    }
  })
})
