import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test.each(['client', 'server'])('the index of %s has under 60 names; the others are in subpaths', (name) => {
  const source = readFileSync(new URL(`../packages/${name}/src/index.ts`, import.meta.url), 'utf8')
  expect(source).not.toMatch(/export \*/)
  const names = Array.from(source.matchAll(/export (?:type )?\{([^}]*)\}/g), ([, list = '']) => list.split(',')).flat()
  expect(names.filter((each) => each.trim() !== '').length).toBeLessThan(60)
})
