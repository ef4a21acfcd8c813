import { expect, test } from 'vitest'
import { Highlighter } from './highlight.ts'
import { paint, textOf } from './markdown/styled-line.ts'
import { themeFor } from './theme.ts'

const dark = themeFor({ theme: 'dark', colour: true })

async function loaded(language: string): Promise<Highlighter> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const highlighter = new Highlighter(resolve)
  expect(highlighter.highlight('1', language, dark)).toBeUndefined()
  await promise
  return highlighter
}

test('code has the colours of the theme once its language is there, and every character of it is kept', async () => {
  const code = 'const a = "<b> & c" // d\'e\n\n/* two\nlines */ return'
  const lines = (await loaded('ts')).highlight(code, 'TypeScript', dark) ?? []
  expect(lines.map(textOf).join('\n')).toBe(code)
  expect(lines.map((line) => paint(line).replaceAll('\u001b', '^'))).toEqual([
    '^[38;5;176mconst^[39m a = ^[38;5;114m"<b> & c"^[39m ^[38;5;245m// d\'e^[39m',
    '',
    '^[38;5;245m/* two^[39m',
    '^[38;5;245mlines */^[39m ^[38;5;176mreturn^[39m',
  ])
})

test('a language that is not known, and code that is very long, have no colours', async () => {
  const highlighter = await loaded('json')
  expect(highlighter.highlight('a', 'constructor', dark)).toBeUndefined()
  expect(highlighter.highlight('a', '', dark)).toBeUndefined()
  expect(highlighter.highlight('1'.repeat(100_000), 'json', dark)).toBeUndefined()
})
