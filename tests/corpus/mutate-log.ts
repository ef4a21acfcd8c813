import type { Chance } from './chance.ts'
import { mutateLine } from './mutate-line.ts'

/** A valid log with one to five things wrong: with its lines, with what they say, and with the bytes. */
export function mutateLog(texts: readonly string[], chance: Chance): Uint8Array {
  let lines = texts
  const ids = idsOf(texts)
  const count = 1 + chance.below(3)
  for (let done = 0; done < count && lines.length > 0; done++) {
    const at = chance.below(lines.length)
    lines = chance.is(0.55)
      ? lines.with(at, mutateLine(lines[at] as string, ids, chance))
      : chance.of(lineMutations)(lines, at, chance)
  }
  let bytes: Uint8Array = Buffer.from(lines.map((line) => `${line}\n`).join(''))
  while (chance.is(0.35)) bytes = chance.of(byteMutations)(bytes, chance)
  return bytes
}

type LineMutation = (lines: readonly string[], at: number, chance: Chance) => readonly string[]

const swap: LineMutation = (lines, at, chance) => {
  const other = chance.below(lines.length)
  return lines.with(at, lines[other] as string).with(other, lines[at] as string)
}

const drop: LineMutation = (lines, at) => lines.toSpliced(at, 1)

const duplicate: LineMutation = (lines, at, chance) =>
  lines.toSpliced(chance.below(lines.length + 1), 0, lines[at] as string)

const truncate: LineMutation = (lines, at, chance) => {
  const line = lines[at] as string
  return lines.with(at, line.slice(0, chance.below(line.length)))
}

const split: LineMutation = (lines, at, chance) => {
  const line = lines[at] as string
  const middle = chance.below(line.length)
  return lines.toSpliced(at, 1, line.slice(0, middle), line.slice(middle))
}

const join: LineMutation = (lines, at, chance) => {
  const stray = chance.of(['', '', '*', '\u000b', ' ', '\u0000', 'xx'])
  return lines.toSpliced(at, 2, lines.slice(at, at + 2).join(stray))
}

const addJunk: LineMutation = (lines, at, chance) => lines.toSpliced(at, 0, chance.of(junkLines))

const decorate: LineMutation = (lines, at, chance) => {
  const line = lines[at] as string
  return lines.with(
    at,
    chance.of([`${line}\r`, ` ${line}`, `${line} `, `\ufeff${line}`, `${line}\u0000\u0000`, `\u0000${line}`]),
  )
}

const lineMutations = [swap, drop, duplicate, truncate, split, join, addJunk, decorate]

const junkLines = [
  '',
  ' ',
  '\r',
  '{}',
  '[]',
  'null',
  '"text"',
  '5',
  '{"type":5}',
  '\u0000'.repeat(40),
  '{"seq":',
  'x'.repeat(300),
]

type ByteMutation = (bytes: Uint8Array, chance: Chance) => Uint8Array

const flipBit: ByteMutation = (bytes, chance) => {
  const flipped = bytes.slice()
  const at = chance.below(bytes.length)
  flipped[at] = (flipped[at] ?? 0) ^ (1 << chance.below(8))
  return flipped
}

const overwrite: ByteMutation = (bytes, chance) => {
  const changed = bytes.slice()
  const from = chance.below(bytes.length)
  const byte = chance.of([0, 0x0a, 0xff, 0x22, 0x7b, 0x80, chance.below(256)])
  changed.fill(byte, from, Math.min(from + 1 + chance.below(60), bytes.length))
  return changed
}

const cutOut: ByteMutation = (bytes, chance) => {
  const from = chance.below(bytes.length)
  const to = from + 1 + chance.below(200)
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
}

const cutOff: ByteMutation = (bytes, chance) => bytes.slice(0, chance.below(bytes.length + 1))

/** Bytes of another place in the file, put in where they do not belong. */
const splice: ByteMutation = (bytes, chance) => {
  const from = chance.below(bytes.length)
  const piece = bytes.subarray(from, from + chance.below(400))
  const at = chance.below(bytes.length)
  return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)])
}

const appendJunk: ByteMutation = (bytes, chance) => {
  const junk = chance.of(['\u0000'.repeat(100), '{"seq":99,"type":"mess', '\n\n', '\r\n', '\ufeff', '}'])
  return Buffer.concat([bytes, Buffer.from(junk)])
}

const byteMutations = [flipBit, overwrite, cutOut, cutOff, splice, appendJunk]

function idsOf(texts: readonly string[]): string[] {
  return texts.flatMap((text) => /"id":"([^"]+)"/.exec(text)?.[1] ?? [])
}
