import { expect, test } from 'vitest'
import { fillTemplate, splitArguments } from './fill-template.ts'

test.each([
  // One argument.
  ['$1', 'a b', 'a'],
  ['$2-$1', 'a b', 'b-a'],
  ['[$3]', 'a b', '[]'],
  ['$10', 'a b c d e f g h i j', 'j'],
  ['$100', 'a', '$100\n\na'],
  ['$0 $01', 'a', '$0 $01\n\na'],
  ['${1}0', 'a', 'a0'],
  ['$1st', 'a', 'ast'],
  ['$1$1', 'a', 'aa'],
  ['$1', '"a b" c', 'a b'],
  // A default.
  ['${1:-x}', 'a', 'a'],
  ['${1:-x}', '', 'x'],
  ['${2:-two words}', 'a', 'two words'],
  ['${1:-x}', '""', 'x'],
  ['[${1:-}]', '', '[]'],
  ['${1:-$2}', '', '$2'],
  ['${1:-a:-b}', '', 'a:-b'],
  ['${@:-all}', '', 'all'],
  ['${ARGUMENTS:-all}', '', 'all'],
  // All of them.
  ['<$@>', 'a  "b  c"', '<a b  c>'],
  ['<${@}>', 'a b', '<a b>'],
  ['<$@>', '', '<>'],
  ['<$ARGUMENTS>', ' a  "b  c"\nd ', '<a  "b  c"\nd>'],
  ['<${ARGUMENTS}>', 'a b', '<a b>'],
  ['$ARGUMENTS_X $ARGUMENTSX $arguments', '', '$ARGUMENTS_X $ARGUMENTSX $arguments'],
  // Some of them.
  ['${@:2}', 'a b c', 'b c'],
  ['${@:1}', 'a b c', 'a b c'],
  ['[${@:4}]', 'a b c', '[]'],
  ['${@:2:2}', 'a b c d', 'b c'],
  ['${@:2:3}', 'a b c d e', 'b c d'],
  ['${@:2:9}', 'a b c', 'b c'],
  ['[${@:2:0}]', 'a b c', '[]'],
  ['${@:0} ${@:-1', '', '${@:0} ${@:-1'],
  // Literal dollars.
  ['$$', '', '$$'],
  ['$$1 $1', 'a', '$$1 a'],
  ['$$$1', 'a', '$$a'],
  [String.raw`\$1 $1`, 'a', '$1 a'],
  [String.raw`\$ARGUMENTS \$@ \${1:-x} \${@:2} $1`, 'a', '$ARGUMENTS $@ ${1:-x} ${@:2} a'],
  [String.raw`\$x \$ a\b`, '', String.raw`\$x \$ a\b`],
  ['$x ${x} ${} $ $(ls) `ls`', '', '$x ${x} ${} $ $(ls) `ls`'],
  // Nothing is expanded twice, and replacement patterns have no meaning.
  ['$1 $2', '$2 $1', '$2 $1'],
  ['$@', '$@ $ARGUMENTS ${@:2}', '$@ $ARGUMENTS ${@:2}'],
  ['a$1b', "$&$`$'", "a$&$`$'b"],
  // A template without placeholders.
  ['Do it.', '', 'Do it.'],
  ['Do it.', ' with "care" ', 'Do it.\n\nwith "care"'],
])('%j with %j is %j', (body, typed, text) => {
  expect(fillTemplate(body, typed)).toEqual({ type: 'filled', text })
})

test('a template that multiplies its arguments is stopped before it exhausts the memory', () => {
  expect(fillTemplate('$@'.repeat(30_000), 'x'.repeat(100_000))).toEqual({ type: 'too_long', maxLength: 1024 * 1024 })
})

test('a long template of incomplete placeholders is filled in reasonable time', () => {
  const start = process.cpuUsage().user
  for (const piece of ['$', '\\', '${1:-', '${@:1:', '\\$', '${', '$ARGUMENT']) {
    expect(fillTemplate(piece.repeat(10_000), 'a')).toMatchObject({ type: 'filled' })
  }
  expect(process.cpuUsage().user - start).toBeLessThan(2_000_000)
})

test.each([
  ['', []],
  ['  \n\t ', []],
  ['a b', ['a', 'b']],
  [' a\n  b\tc ', ['a', 'b', 'c']],
  ['"a b" c', ['a b', 'c']],
  ["'a b' c", ['a b', 'c']],
  ['"" \'\' a', ['', '', 'a']],
  ['name="a b"', ['name=a b']],
  ["name='a b'", ['name=a b']],
  ['"a"\'b\'c', ['abc']],
  [String.raw`"say \"a\" \\ \n"`, [String.raw`say "a" \ \n`]],
  [String.raw`'a\b' "c"`, [String.raw`a\b`, 'c']],
  [String.raw`a\ b`, ['a b']],
  [String.raw`\"a b\"`, ['"a', 'b"']],
  [String.raw`a\\b`, [String.raw`a\b`]],
  ['a\\', ['a\\']],
  [String.raw`C:\folder\file`, [String.raw`C:\folder\file`]],
  ["don't and won't", ["don't", 'and', "won't"]],
  ['a "b c', ['a', '"b', 'c']],
  ["'a b", ["'a", 'b']],
  ['"a\nb"', ['a\nb']],
  ["it is 'so' they said", ['it', 'is', 'so', 'they', 'said']],
])('%j is split into %j', (text, words) => {
  expect(splitArguments(text)).toEqual(words)
})

test('a long text of quotes and backslashes is split in reasonable time', () => {
  const start = process.cpuUsage().user
  for (const piece of ['"', "'", '\\"', '"\\"', '\'"', '" \'']) splitArguments(piece.repeat(100_000))
  expect(process.cpuUsage().user - start).toBeLessThan(2_000_000)
})
