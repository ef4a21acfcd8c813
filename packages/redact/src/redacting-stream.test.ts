import { randomFrom } from '@tapetree/session/testing'
import { describe, expect, it, test } from 'vitest'
import { createRedactor, type Redactor } from './redactor.ts'
import { pick, plant, secretShapes } from './testing/planted-secrets.ts'

// Assembled from pieces, so that no secret scanner finds a key here.
const privateKey = ['PRIVATE', 'KEY'].join(' ')
const redactor = createRedactor({ secrets: { KNOWN: 'some known value, ünïcode' } })

test('a secret of any family is found wherever it is split', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const differing = secretShapes.flatMap((shape) => {
    const text = `say ${plant(shape, random).text} end`
    const whole = redactor.text(text)
    // Long keys are many similar lines.
    const step = Math.ceil(text.length / 250)
    const places = Array.from({ length: Math.floor(text.length / step) }, (_, index) => index * step)
    return places
      .filter((place) => inPieces([text.slice(0, place), text.slice(place)]) !== whole)
      .map((place) => `${place} of ${text}`)
  })
  expect({ seed, differing }).toEqual({ seed, differing: [] })
})

test('text in random pieces gives the same result as the whole', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const ordinary = [
    'const a = 1\n',
    ' token ',
    'the password is: ',
    '-----BEGIN ',
    'sk-',
    '://',
    '[redacted: ',
    ' ünï 🙂 ',
    'some known value, ünïcode',
  ]
  const differing = Array.from({ length: 400 }, () => {
    const text = Array.from({ length: 6 }, () => {
      const { text: planted, secret } = plant(pick(secretShapes, random), random)
      return pick([planted, `${planted}\n`, secret, secret.slice(0, secret.length / 2), pick(ordinary, random)], random)
    }).join(pick(['', ' ', '\n'], random))
    return { text, pieces: inRandomPieces(text, pick([1, 3, 20, 200], random), random) }
  }).filter(({ text, pieces }) => inPieces(pieces) !== redactor.text(text))
  expect({ seed, differing }).toEqual({ seed, differing: [] })
})

test('examining deferred text at any moment releases nothing too early', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const differing = Array.from({ length: 200 }, () => {
    const planted = Array.from({ length: 3 }, () => plant(pick(secretShapes, random), random))
    const text = planted
      .map((each) => (random() < 0.3 ? each.text.slice(0, each.text.length / 2) : each.text))
      .join(' ')
    const stream = redactor.stream()
    const pieces = inRandomPieces(text, pick([3, 20, 200], random), random)
    const given = pieces.map((piece) => stream.write(piece) + (random() < 0.3 ? stream.catchUp() : '')).join('')
    return { text, given: given + stream.end() }
  }).filter(({ text, given }) => given !== redactor.text(text))
  expect({ seed, differing }).toEqual({ seed, differing: [] })
})

test('ordinary text is held back only as far as a secret may have begun', () => {
  const stream = redactor.stream()
  const pieces = ['The ', 'loop, ', 'tool by too', 'l, ', 'finds g', 'hosts', ' & ', 'gh', 'p_', '1']
  expect(pieces.map((piece) => stream.write(piece))).toEqual([
    ...['The ', 'loop, ', 'tool by to', 'ol, ', 'finds ', 'ghos', 'ts & ', '', '', ''],
  ])
  expect(stream.end()).toBe('ghp_1')
})

describe('a private key', () => {
  const begin = `-----BEGIN ${privateKey}-----\n`
  const line = `${'aB3+'.repeat(16)}\n`

  it('that never ends is held up to a limit', () => {
    const stream = redactor.stream()
    let given = stream.write(begin)
    for (let count = 0; count < 1000; count++) given += stream.write(line)
    expect(given.length).toBeGreaterThan(0)
    expect(given).not.toContain(line.repeat(10) + begin)
    expect(given + stream.end()).toBe(redactor.text(begin + line.repeat(1000)))
  })

  it('in single characters takes linear time', () => {
    const text = `${begin}${line.repeat(400)}-----END ${privateKey}-----\nafter`
    const start = process.cpuUsage()
    expect(inPieces([...text])).toBe('[redacted: private-key]\nafter')
    expect(process.cpuUsage(start).user / 1000).toBeLessThan(2000)
  })

  it('that is only mentioned holds nothing back for long', () => {
    const stream = redactor.stream()
    expect(stream.write(`check for "${begin.trim()}"; then { go on,`)).toContain('go on,')
  })
})

describe('bytes', () => {
  it('without secrets are unchanged', () => {
    const random = randomFrom(1)
    const bytes = Uint8Array.from({ length: 5000 }, () => Math.floor(random() * 256))
    const stream = redactor.byteStream()
    const out = Buffer.concat([stream.write(bytes.subarray(0, 777)), stream.write(bytes.subarray(777)), stream.end()])
    expect(out.equals(bytes)).toBe(true)
    expect(redactor.bytes(bytes)).toBe(bytes)
  })

  it('of a secret are replaced, even if a character is split', () => {
    const bytes = Buffer.from('ö some known value, ünïcode ö')
    for (let place = 0; place <= bytes.length; place++) {
      const stream = redactor.byteStream()
      const out = Buffer.concat([
        stream.write(bytes.subarray(0, place)),
        stream.write(bytes.subarray(place)),
        stream.end(),
      ])
      expect(out.toString()).toBe('ö [redacted: KNOWN] ö')
    }
    expect(Buffer.from(redactor.bytes(bytes)).toString()).toBe('ö [redacted: KNOWN] ö')
  })
})

test('a stream may be reused for another text after its end', () => {
  const stream = redactor.stream()
  stream.write('some known')
  expect(stream.end()).toBe('some known')
  expect(stream.write(' value, ünïcode') + stream.end()).toBe(' value, ünïcode')
})

function inPieces(pieces: readonly string[], from: Redactor = redactor): string {
  const stream = from.stream()
  return pieces.map((piece) => stream.write(piece)).join('') + stream.end()
}

function inRandomPieces(text: string, longest: number, random: () => number): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length;) {
    const length = 1 + Math.floor(random() * longest)
    pieces.push(text.slice(start, start + length))
    start += length
  }
  return pieces
}
