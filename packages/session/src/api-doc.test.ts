// The API page is written by hand. These tests fail if a public name is missing from it.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as format from './format.ts'
import * as core from './index.ts'
import * as logStore from './log-store.ts'
import * as screen from './screen.ts'
import * as copy from './stores/copy.ts'
import * as postgres from './stores/postgres/index.ts'
import * as testing from './testing/index.ts'
import * as view from './view.ts'

const api = { ...core, ...format, ...logStore, ...screen, ...view }

const page = readFileSync(new URL('../../../docs/reference/session-api.md', import.meta.url), 'utf8')

test('every exported function, class and constant is on the page', () => {
  expect([api, testing, postgres, copy].flatMap(Object.keys).filter((name) => !isNamed(name))).toEqual([])
})

test('no entry point has 60 names or more, and no name stands in two of them', () => {
  const names = ['index.ts', 'format.ts', 'view.ts', 'screen.ts', 'log-store.ts'].map((file) => {
    const source = readFileSync(new URL(file, import.meta.url), 'utf8')
    return Array.from(source.matchAll(/\{([^}]*)\} from/g), ([, list = '']) => list.split(',')).flatMap((list) =>
      list.map((name) => name.trim()).filter((name) => name !== ''),
    )
  })
  expect(names.map((each) => each.length).filter((count) => count >= 60)).toEqual([])
  const all = names.flat()
  expect(all.filter((name, place) => all.indexOf(name) !== place)).toEqual([])
})

test('every method and property of the classes is on the page', () => {
  const classes = [api.Player, api.Queue, api.Session, api.SessionStore]
  const members = classes.flatMap(({ name, prototype }) =>
    Object.getOwnPropertyNames(prototype).map((member) => ({ name, member })),
  )
  expect(members.filter(({ member }) => member !== 'constructor' && !isNamed(member))).toEqual([])
})

test('every error code is on the page, and no other', () => {
  const source = readFileSync(new URL('errors.ts', import.meta.url), 'utf8')
  const codes = new Set(Array.from(source.matchAll(/^ {2}\| '([a-z-]+)'/gm), ([, code]) => code))
  const errors = page.slice(page.indexOf('\n## Errors'), page.indexOf('\n## Testing'))
  expect(new Set(Array.from(errors.matchAll(/^\| `([a-z-]+)` +\|/gm), ([, code]) => code))).toEqual(codes)
})

/** At the start of a code span, as in `open(id)`. */
function isNamed(name: string): boolean {
  return new RegExp(`[\`\\s{]${name}\\b`).test(page)
}
