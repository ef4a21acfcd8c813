import { expect, test } from 'vitest'
import { families } from './families.ts'
import { createRedactor } from './redactor.ts'

const redactor = createRedactor()
const size = 50_000

test('time grows linearly with the text, whatever it contains', () => {
  const fillers = ['', 'a', '="a1', ' A1b2.', `${'a1'.repeat(40)}.`, '\n']
  // One text of each kind for each family; each has the anchor of the family some thousand times.
  const texts = families.flatMap(({ name, anchors: [anchor = ''] }, index) => {
    const filler = fillers[index % fillers.length] ?? ''
    const others = fillers[(index + 3) % fillers.length] ?? ''
    return [repeat(anchor + filler), repeat(anchor + others), anchor + repeat('a1')].map((text) => ({ name, text }))
  })
  const ordinary = repeat('export const value = compute(first, second)\n')
  for (let warm = 0; warm < 20; warm++) timeOf(ordinary)
  const slow = texts.filter(({ text }) => timeOf(text) > 1000 * Math.max(timeOf(ordinary), 0.2))
  expect(slow.map(({ name, text }) => `${name}: ${text.slice(0, 40)}`)).toEqual([])
})

test('a hostile text takes little longer than ordinary text', () => {
  const texts = [
    '-eyJ',
    '-eyJaaaaaaaaa.',
    'AuthAuth">',
    'Authorization:ghs_D8AJmSZEj7g0qldFdJ2ZnjRU3R6XuhQBx9sf:',
    'PWD=',
    `${'pass='.repeat(20)}A1b2(`,
    'pass="a1',
    '&pass:',
    ' :=pwdpwd',
    '-ATBB',
    'sshpass -p1',
    'snyk>',
  ]
  const ordinary = repeat('const token = await readToken(path) // see the docs: "first", second\n')
  const best = (text: string): number => Math.min(...Array.from({ length: 5 }, () => timeOf(text)))
  for (const text of [ordinary, ...texts.map(repeat)]) best(text)
  // Other work of the machine makes one of them slow, not always the same.
  let slow = texts
  for (let round = 0; round < 3; round++) {
    const limit = 30 * Math.max(best(ordinary), 0.5)
    slow = slow.filter((text) => best(repeat(text)) > limit)
  }
  expect(slow).toEqual([])
})

test('data that all redactors share is held in memory once', () => {
  createRedactor()
  const before = process.memoryUsage().arrayBuffers
  const redactors = Array.from({ length: 20 }, (_, index) =>
    createRedactor({ secrets: { KEY: `some-secret-value-${index}` } }),
  )
  const bytesEach = (process.memoryUsage().arrayBuffers - before) / redactors.length
  expect(bytesEach).toBeLessThan(200_000)
})

function repeat(text: string): string {
  return text.repeat(Math.ceil(size / text.length))
}

function timeOf(text: string): number {
  const start = process.cpuUsage()
  redactor.text(text)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}
