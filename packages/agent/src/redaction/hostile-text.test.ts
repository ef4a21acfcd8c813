import { expect, test } from 'vitest'
import { families } from './families.ts'
import { createRedactor } from './redactor.ts'

const redactor = createRedactor()
const size = 100_000

test('time grows with the text and no faster, whatever stands in it', () => {
  const fillers = ['', 'a', '="a1', ' A1b2.', `${'a1'.repeat(40)}.`, '\n']
  // One text of each kind for each family; each has the family's anchor some thousand times.
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

function repeat(text: string): string {
  return text.repeat(Math.ceil(size / text.length))
}

function timeOf(text: string): number {
  const start = process.cpuUsage()
  redactor.text(text)
  return process.cpuUsage(start).user / 1000
}
