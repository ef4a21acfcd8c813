import type { Chance } from './chance.ts'

/** Names that are members of every object, or mean something to the language. */
export const nastyNames = [
  '__proto__',
  'constructor',
  'prototype',
  'then',
  'toString',
  'hasOwnProperty',
  'toJSON',
  '',
  '0',
]

/** Numbers as they stand in the text: JavaScript cannot hold all of them. */
export const nastyNumbers = [
  ...['0', '-0', '-1', '1.5', '1e999', '-1e999', '9007199254740991', '9007199254740992', '9007199254740993'],
  ...['1e15', '999999999999999', '4294967296', '1e-320', '123456789012345678901234567890'],
]

/** Stands for a number in its exact spelling until the line is text. */
export function rawNumber(spelling: string): string {
  return `@number ${spelling}@`
}

export function withRawNumbers(json: string): string {
  return json.replaceAll(/"@number ([^@"]*)@"/g, '$1')
}

export function nastyValue(chance: Chance, ids: readonly string[]): unknown {
  switch (chance.below(10)) {
    case 0:
      return rawNumber(chance.of(nastyNumbers))
    case 1:
      return chance.of([null, true, false])
    case 2:
      return chance.of(['', 'x', '\u0000', '\ud800', '\u2028', '../..', '\ufeff', 'a'.repeat(500)])
    case 3:
      return chance.of(nastyNames)
    case 4:
      return chance.of([[], [null], [[]], [{}], ['x', 1, null], [1, [2, [3]]]])
    case 5:
      return chance.of([{}, { type: 'text' }, { type: 'tool_use', tool_use: null }, { text: { content: 5 } }])
    case 6:
      return nested(1 + chance.below(80))
    case 7:
      return chance.of([
        [{ path: '/message/content', sha256: 'f'.repeat(64), size: 1 }],
        [{ path: '/__proto__/polluted', sha256: 'e'.repeat(64), size: 1 }],
        [{ sha256: 5 }],
      ])
    default:
      return ids.length === 0 ? 'nobody' : chance.of(ids)
  }
}

export function nested(depth: number): unknown {
  let value: unknown = 'deep'
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { value }
  return value
}
