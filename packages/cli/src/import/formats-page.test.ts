import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dropReasons, mergeReasons, sourceNames } from './import-source.ts'
import { sources } from './sources.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/reference/import-formats.md'), 'utf8')

test.each(sourceNames)('the page of formats has a row for every kind of line of %s', (name) => {
  const { title, kinds } = sources[name]
  const rows = kinds.map(({ line, fate, becomes }) => `| \`${line}\` | ${fate} | ${becomes} |`)
  expect(rowsOf(title)).toEqual(rows)
})

test('the page of formats has a row for every reason', () => {
  const rows = (reasons: Record<string, string>): string[] =>
    Object.entries(reasons).map(([name, why]) => `| ${name} | ${why} |`)
  expect(rowsOf('Merged')).toEqual(rows(mergeReasons))
  expect(rowsOf('Dropped')).toEqual(rows(dropReasons))
})

/** The rows of the table in a section, without the spaces that align them. */
function rowsOf(title: string): string[] {
  const section = page.split(/^##+ /m).find((each) => each.startsWith(`${title}\n`)) ?? ''
  const table = section.split('\n').filter((line) => line.startsWith('|'))
  return table.slice(2).map((line) => line.replaceAll(/ +/g, ' ').trim())
}
