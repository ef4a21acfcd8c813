import { expect, test } from 'vitest'
import { codeLanguages } from '@tapetree/session/screen'
import { Highlighter } from './highlight.ts'
import { paint, textOf } from './wrap-line.ts'
import { themeFor } from '../theme.ts'

const dark = themeFor({ theme: 'dark', color: true })

async function loaded(language: string): Promise<Highlighter> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const highlighter = new Highlighter(resolve)
  expect(highlighter.highlight('1', language, dark)).toBeUndefined()
  await promise
  return highlighter
}

test('code has the colors of the theme once its grammar is loaded, and keeps every character', async () => {
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

test('code in an unknown language, and very long code, has no colors', async () => {
  const highlighter = await loaded('json')
  expect(highlighter.highlight('a', 'constructor', dark)).toBeUndefined()
  expect(highlighter.highlight('a', '', dark)).toBeUndefined()
  expect(highlighter.highlight('1'.repeat(100_000), 'json', dark)).toBeUndefined()
})

test.each(codeLanguages)(
  '20,000 underscores as %s take at most 20 times as long as ordinary code',
  async (language) => {
    const highlighter = await loaded(language)
    const ordinary = 'const total = orders.map((order) => order.amount) // in cents\n'.repeat(330).slice(0, 20_000)
    // A grammar is slow until it has been used for a while.
    for (let call = 0; call < 25; call++) highlighter.highlight(ordinary.slice(0, 1000), language, dark)
    const [ordinaryMs, ...hostileMs] = [
      ordinary,
      '_'.repeat(20_000),
      `${'_'.repeat(499)}\n`.repeat(40),
      `${'_'.repeat(60)}\n`.repeat(330),
    ].map((code) => {
      const before = process.threadCpuUsage()
      highlighter.highlight(code, language, dark)
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1000
    })
    // Shorter times are noise, whatever ordinary code takes.
    expect(Math.max(...hostileMs)).toBeLessThan(Math.max(20 * (ordinaryMs ?? 0), 100))
  },
)

test('long code is highlighted in chunks, and keeps every character', async () => {
  const code = Array.from({ length: 400 }, (_, line) => (line % 9 === 0 ? '' : `const a${line} = "${line}"`)).join('\n')
  const lines = (await loaded('ts')).highlight(code, 'ts', dark) ?? []
  expect(lines.map(textOf).join('\n')).toBe(code)
})
