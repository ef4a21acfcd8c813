import { expect, test } from 'vitest'
import { darkTheme, plainTheme } from '../testing/panel-driver.ts'
import { commandRows, wordRows } from './command-rows.ts'

const chain = 'git fetch origin && git rebase origin/main && npm ci && npm test -- --reporter=dot'

test('a command that fits is one row', () => {
  expect(rows(chain, 90)).toEqual([`$ ${chain}`])
})

test('a command that does not fit has one row for each part of its chain', () => {
  expect(rows(chain, 60)).toEqual(
    ['$ git fetch origin && ', '  git rebase origin/main && ', '  npm ci && ', '  npm test -- --reporter=dot'].map(
      (row) => row.trimEnd(),
    ),
  )
})

test('a chain of many parts fills its rows, so that it needs few of them', () => {
  const command = Array.from({ length: 12 }, (_, index) => `echo ${index + 1}`).join(' && ')
  expect(rows(command, 42)).toEqual([
    '$ echo 1 && echo 2 && echo 3 && echo 4 &&',
    '  echo 5 && echo 6 && echo 7 && echo 8 &&',
    '  echo 9 && echo 10 && echo 11 && echo 12',
  ])
})

test('a part that does not fit is broken between words, and its further rows say so', () => {
  expect(rows('cd src && grep --recursive --line-number timeout .', 24)).toEqual([
    '$ cd src &&',
    '  grep --recursive ',
    '⤷ --line-number timeout ',
    '⤷ .',
  ])
})

test('operators in quotes, brackets and redirections do not break a command', () => {
  const command = `echo "a && b; c" 'd | e' $(cat x | wc -l) 2>&1 >&2 && echo done`
  expect(rows(command, 56)).toEqual(['$ echo "a && b; c" \'d | e\' $(cat x | wc -l) 2>&1 >&2 &&', '  echo done'])
})

test('the lines of a command stay lines, and a line break in quotes does not hide what follows', () => {
  expect(rows(`git commit -m "one\n\n  two; three" &&\nnpm test`, 60)).toEqual([
    '$ git commit -m "one',
    '  ',
    '    two; three" &&',
    '  npm test',
  ])
})

test.each([
  chain,
  `a  &&   b "${'long  words '.repeat(9)}"`,
  'x'.repeat(95),
  `漢字 ${'漢'.repeat(40)} && 'open ${'y '.repeat(30)}`,
])('no width loses a letter of a command: %s', (command) => {
  for (let width = 3; width <= 100; width++) {
    const text = rows(command, width)
      .map((row) => row.slice(2))
      .join('')
    expect(text.replaceAll(' ', '')).toBe(command.replaceAll(' ', ''))
  }
})

test('a row that is full continues in the same word; every other break is at a space', () => {
  expect(wordRows([{ text: 'aaa bbbb cc dddddddd' }], 4).map(([span]) => span?.text)).toEqual([
    'aaa ',
    'bbbb',
    ' cc ',
    'dddd',
    'dddd',
  ])
})

test('programs, operators and quotes differ in color', () => {
  const [row = ''] = commandRows('CI=1 npm test "a b" | tail -5 # last', { theme: darkTheme, width: 80 })
  const { accent, muted, syntax } = darkTheme
  expect(row).toBe(
    `${muted('$ ')}CI=1 ${accent('npm')} test ${syntax['string']?.('"a b"')} ${syntax['keyword']?.('|')} ${accent('tail')} -5 ${muted('# last')}`,
  )
})

test('a command of many lines has all of them', () => {
  expect(rows('echo one && echo "two"\n'.repeat(9000), 20).filter((row) => row.includes('"two"'))).toHaveLength(9000)
})

function rows(command: string, width: number): string[] {
  return commandRows(command, { theme: plainTheme, width })
}
