import { expect, test } from 'vitest'
import { vimKey, vimStart, type VimState } from './vim-keys.ts'

/** Applies keys to a text. The cursor is `|`. */
function after(text: string, keys: string): string {
  let cursor = text.indexOf('|')
  let now = text.replace('|', '')
  let state: VimState = { ...vimStart, mode: 'normal' }
  for (const key of keys) {
    const step = vimKey(state, key, { text: now, cursor })
    if (!step) throw new Error(`No meaning: ${key}`)
    state = step.state
    for (const effect of step.effects) {
      if (effect.type === 'move') cursor = effect.to
      if (effect.type === 'replace') [now, cursor] = [effect.text, effect.cursor]
    }
  }
  return `${now.slice(0, cursor)}|${now.slice(cursor)}${state.mode === 'insert' ? ' (insert)' : ''}`
}

test.each([
  ['one |two', 'h', 'one| two'],
  ['one |two', '9h', '|one two'],
  ['|one two', '3l', 'one| two'],
  ['|one two, three', 'w', 'one |two, three'],
  ['|one two, three', '2w', 'one two|, three'],
  ['one two|', 'b', 'one |two'],
  ['|one two', 'e', 'on|e two'],
  ['a\n  b|c', '0', 'a\n|  bc'],
  ['a\n  b|c', '^', 'a\n  |bc'],
  ['a|b\nc', '$', 'ab|\nc'],
])('%j with %s is %j', (text, keys, result) => {
  expect(after(text, keys)).toBe(result)
})

test.each([
  ['|abc', 'x', '|bc'],
  ['|abc', '2x', '|c'],
  ['one\nt|wo\nthree', 'dd', 'one\n|three'],
  ['one\nt|wo', 'dd', 'one|'],
  ['o|ne\ntwo\nthree', '2dd', '|three'],
  ['|one two', 'dw', '|two'],
  ['one |two', 'cw', 'one | (insert)'],
  ['o|ne\ntwo', 'ddp', 'two\n|one'],
  ['a|b', 'xp', 'a|b'],
  ['one t|wo', 'D', 'one t|'],
  ['o|ne', 'o', 'one\n| (insert)'],
  ['o|ne', 'A', 'one| (insert)'],
  ['on|e', 'I', '|one (insert)'],
  ['o|ne', 'a', 'on|e (insert)'],
])('%j after %s is %j', (text, keys, result) => {
  expect(after(text, keys)).toBe(result)
})

test.each([
  ['one\ntwo\nth|ree', 'gg', '|one\ntwo\nthree'],
  ['one\ntwo\nth|ree', '2gg', 'one\n|two\nthree'],
  ['one\ntwo\nth|ree\nfour', 'dgg', '|four'],
  ['|a(b, c)', 'f,', 'a(b|, c)'],
  ['|a(b, c)', 't,', 'a(|b, c)'],
  ['a.b.c|.d', 'F.', 'a.b|.c.d'],
  ['a.b.c|d', 'T.', 'a.b.|cd'],
  ['|a.b.c.d', '2f.', 'a.b|.c.d'],
  ['|a.b.c.d', 'f.;', 'a.b|.c.d'],
  ['|a.b.c.d', 't.;', 'a.|b.c.d'],
  ['a.b.c|.d', 'F.,', 'a.b.c|.d'],
  ['|ab\ncd', 'fd', '|ab\ncd'],
  ['|one, two', 'dt,', '|, two'],
  ['|one, two', 'df,', '| two'],
  ['|one, two', 'cf,', '| two (insert)'],
  ['|one é two', 'dfé', '| two'],
])('%j with %s finds %j', (text, keys, result) => {
  expect(after(text, keys)).toBe(result)
})

test.each([
  ['one tw|o three', 'ciw', 'one | three (insert)'],
  ['one tw|o three', 'daw', 'one |three'],
  ['one tw|o', 'daw', 'one|'],
  ['say "one t|wo" now', 'ci"', 'say "|" now (insert)'],
  ["say '|one' now", "da'", 'say | now'],
  ['"a" b| "c"', 'di"', '"a" b "|"'],
  ['f(a, g(b), |c)', 'di(', 'f(|)'],
  ['f(a, g(b|), c)', 'dib', 'f(a, g(|), c)'],
  ['x = {\n  |a\n}', 'da{', 'x = |'],
  ['no brack|ets', 'di(', 'no brack|ets'],
  ['one\ntw|o\n\nthree', 'dip', '|\nthree'],
])('%j with the text object %s is %j', (text, keys, result) => {
  expect(after(text, keys)).toBe(result)
})

test.each([
  ['on|e two', 'vld', 'on|two'],
  ['|one two', 'vec', '| two (insert)'],
  ['one t|wo', 'vbx', 'one |o'],
  ['one |two', 'vhhod', 'on|wo'],
  ['one\nt|wo\nthree', 'Vd', 'one\n|three'],
  ['one |two three', 'viwd', 'one | three'],
  ['|one two', 'vey$p', 'one twoon|e'],
  ['|one', 'vv', '|one'],
  ['|abc', 'vfcd', '|'],
])('%j after the selection %s is %j', (text, keys, result) => {
  expect(after(text, keys)).toBe(result)
})

test('Enter and keys with Ctrl have no meaning in vim, and an unknown letter does nothing', () => {
  const place = { text: 'a', cursor: 0 }
  const normal: VimState = { ...vimStart, mode: 'normal' }
  expect([vimKey(normal, '\r', place), vimKey(normal, '\u0003', place)]).toEqual([undefined, undefined])
  expect(vimKey(normal, 'Z', place)).toEqual({ state: normal, effects: [] })
})
