import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('no source file hides a branch from the coverage', () => {
  const hiding = globSync('packages/*/src/**/*.ts').filter((file) =>
    /\b(v8|c8|istanbul|vitest) ignore\b/.test(readFileSync(file, 'utf8')),
  )
  expect(hiding).toEqual([])
})
