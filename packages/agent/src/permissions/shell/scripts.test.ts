import { describe, expect, test } from 'vitest'
import { awkOnlyPrints } from './programs/read-only-programs.ts'
import { sedOnlyPrints } from './programs/sed-script.ts'

describe('a sed script', () => {
  test.each([
    'p',
    '1,5p',
    '$p',
    '/a/,/b/p',
    '1!G;h;$!d',
    's/a/b/g',
    's|/usr|/opt|2p',
    'y/abc/xyz/',
    '/^$/d',
    '{p;p}',
    '5q',
    '$=',
  ])('that only prints is accepted: %s', (script) => expect(sedOnlyPrints(script)).toBe(true))

  test.each([
    'w C',
    '1e touch C',
    'e',
    's/a/b/w C',
    's/a/b/e',
    's/a/b/gpw C',
    'r .env',
    'R .env',
    'W C',
    'p;w C',
    'p\nw C',
    '{p;w C\n}',
    '/[/]/w C',
    's/[/w C/]/x/;w C',
    'a text',
    'a\\\nw C',
    'b end;: end',
    '\\,a,w C',
    's/a/b',
    '{p',
    'p}',
    's\na\nb\nw C',
  ])('that does more, or cannot be parsed, is rejected: %j', (script) => expect(sedOnlyPrints(script)).toBe(false))
})

describe('an awk program', () => {
  test.each(['{print $1}', 'NR==10', '$3 > 100 {print $1}', '/a/ || /b/', '{s += $1} END {print s}', 'length > 120'])(
    'that only prints is accepted: %s',
    (program) => expect(awkOnlyPrints(program)).toBe(true),
  )

  test.each([
    '{print > "C"}',
    '{printf "x" >> "C"}',
    'BEGIN{system("touch C")}',
    '{print | "sh"}',
    'BEGIN{"touch C" | getline}',
    'BEGIN{getline < ".env"}',
    'BEGIN{ARGV[1]=".env"}',
    '@load "filefuncs"',
    '@f()',
    'BEGIN{print ENVIRON["HOME"]}',
    '/"/{system("touch C")} #"',
  ])('that may do more is rejected: %s', (program) => expect(awkOnlyPrints(program)).toBe(false))
})
