import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('the page for contributors lists every switch that makes a test write files', () => {
  const uses = execFileSync('git', ['grep', '-hoE', "process\\.env\\['UPDATE_[A-Z_]+'\\]", '--', '*.ts'], {
    encoding: 'utf8',
  })
  const page = readFileSync('CONTRIBUTING.md', 'utf8')
  const namesIn = (text: string): string[] => [...new Set(text.match(/UPDATE_[A-Z_]+/g))].sort()
  expect(namesIn(page)).toEqual(namesIn(uses))
})
