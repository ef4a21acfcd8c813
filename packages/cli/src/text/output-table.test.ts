import { expect, test } from 'vitest'
import { outputTable } from './output-table.ts'

const columns = [{ title: 'ID' }, { title: 'COST', align: 'right' as const }, { title: 'NAME', flexible: true }]

test('columns are aligned by display width', () => {
  expect(
    outputTable(columns, [
      ['a1', '0.10', '漢字'],
      ['b', '12.00', 'x'],
    ]),
  ).toBe('ID   COST  NAME\na1   0.10  漢字\nb   12.00  x\n')
})

test('the flexible column shrinks on a narrow terminal', () => {
  expect(outputTable(columns, [['a1', '0.10', 'a name that is too long']], 20)).toBe(
    'ID  COST  NAME\na1  0.10  a name th…\n',
  )
})
