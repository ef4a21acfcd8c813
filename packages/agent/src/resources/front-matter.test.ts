import { expect, test } from 'vitest'
import { parseFrontMatter } from './front-matter.ts'

test('the fields are between two lines of dashes, and the body follows', () => {
  expect(parseFrontMatter('---\nname: a\nlist: [b, c]\nmap:\n  d: e\n---\n\n# Body\n---\n')).toEqual({
    type: 'parsed',
    fields: new Map<string, unknown>([
      ['name', 'a'],
      ['list', ['b', 'c']],
      ['map', new Map([['d', 'e']])],
    ]),
    body: '\n# Body\n---\n',
    hasFields: true,
  })
})

test('every value is the written text', () => {
  const { fields } = parsed('---\na: yes\nb: 010\nc: 2026-01-01\nd: null\ne: 1e3\nf:\n__proto__: g\n---')
  expect([...fields]).toEqual([
    ['a', 'yes'],
    ['b', '010'],
    ['c', '2026-01-01'],
    ['d', 'null'],
    ['e', '1e3'],
    ['f', ''],
    ['__proto__', 'g'],
  ])
})

test.each(['', 'text\n---\na: b\n---\n', '----\na: b\n---\n', ' ---\na: b\n---', '--- a\n---\n'])(
  'a text that does not begin with a line of dashes is all body: %j',
  (text) => {
    expect(parseFrontMatter(text)).toEqual({ type: 'parsed', fields: new Map(), body: text, hasFields: false })
  },
)

test('empty front matter has no fields', () => {
  expect(parseFrontMatter('---\n---\nbody')).toEqual({
    type: 'parsed',
    fields: new Map(),
    body: 'body',
    hasFields: true,
  })
})

test.each([
  ['no end', '---\na: b\n', 'the front matter has no closing line ---', 1],
  ['nothing but dashes', '---', 'the front matter has no closing line ---', 1],
  ['an indented end', '---\na: |\n ---\n', 'the front matter has no closing line ---', 1],
  ['too many characters', `---\na: ${'x'.repeat(9000)}\n---`, 'the front matter has more than 8192 characters', 1],
  ['a list', '---\n\n- a\n---', 'the front matter is not a list of `name: value`', 3],
  ['only a word', '---\nword\n---', 'the front matter is not a list of `name: value`', 2],
  ['a key twice', '---\na: 1\nb: 2\na: 3\n---', 'the front matter has `a` twice', 4],
  ['an alias', '---\na: b\nc: *x\n---', 'the front matter has an alias, which is not supported', 3],
  ['an anchor', '---\na: &x y\n---', 'the front matter has an anchor, which is not supported', 2],
  ['deep nesting', `---\na: ${'['.repeat(9)}${']'.repeat(9)}\n---`, 'the front matter is nested more than 4 deep', 2],
])('front matter with %s is rejected with its line', (_, text, problem, line) => {
  expect(parseFrontMatter(text)).toEqual({ type: 'invalid', problem, line })
})

test.each([
  ['a tag', '---\na: !!js/function "x"\n---', 2],
  ['a tab as indentation', '---\na:\n\tb: c\n---', 3],
  ['a second document', '---\na: b\n--- c\n---', 3],
  ['an unclosed quote', '---\na: "b\n---', 3],
])('front matter with %s is invalid', (_, text, line) => {
  expect(parseFrontMatter(text)).toEqual({
    type: 'invalid',
    problem: expect.stringMatching(/^the front matter is not valid YAML: [^\n]+$/),
    line,
  })
})

test('an unquoted colon in a value is explained', () => {
  const result = parseFrontMatter('---\nname: a\ndescription: Use it: now\n---')
  expect(result).toMatchObject({ line: 3, problem: expect.stringContaining('a value with a colon in it needs quotes') })
})

test('aliases that would multiply are rejected before they are expanded', () => {
  const levels = Array.from({ length: 40 }, (_, level) => `l${level + 1}: &l${level + 1} [*l${level}, *l${level}]`)
  expect(parseFrontMatter(`---\nl0: &l0 [x, x]\n${levels.join('\n')}\n---`)).toMatchObject({ type: 'invalid' })
})

test.each([
  ['open brackets', '['.repeat(8000)],
  ['open maps', '{a: '.repeat(2000)],
  ['dashes', '- '.repeat(4000)],
  ['keys', Array.from({ length: 1500 }, (_, index) => `k${index}:`).join('\n')],
  ['keys of a map on one line', `{${Array.from({ length: 1500 }, (_, index) => `k${index}`).join(',')}}`],
  ['lines of blanks and dashes', `${' '.repeat(70)}---\n`.repeat(100)],
])('many %s are read or rejected in reasonable time', (_, source) => {
  const start = process.cpuUsage().user
  expect(parseFrontMatter(`---\nx: 1\n${source}\n---\n`).type).toMatch(/parsed|invalid/)
  expect(process.cpuUsage().user - start).toBeLessThan(1_500_000)
})

function parsed(text: string): { fields: ReadonlyMap<string, unknown> } {
  const result = parseFrontMatter(text)
  if (result.type === 'invalid') throw new Error(result.problem)
  return result
}
