import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { rowsMissingIn } from '../tests/peers/peer-table.ts'

test('the README has at most 6 KB', () => {
  expect(statSync('README.md').size).toBeLessThanOrEqual(6 * 1024)
})

test('the README compares with six experiments, word for word as the page of experiments tells them', () => {
  const rows = readFileSync('README.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (?:-|experiment )/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, experiment = '', others = '', tapetree = '']) => ({ experiment, others, tapetree }))
  expect(rows).toHaveLength(6)
  expect(rowsMissingIn(readFileSync('docs/peers.md', 'utf8'), rows)).toEqual([])
})
