// The API page is written by hand. These tests fail if a public name is missing from it.
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as api from './index.ts'
import { Pairing } from './auth/pairing.ts'
import { TokenStore } from './auth/token-store.ts'
import { LiveSession } from './live/live-session.ts'
import { LiveSessions } from './live/live-sessions.ts'

const page = textAt('../../../docs/reference/server-api.md')

test('every exported name is on the page', () => {
  const names = exportsOf(textAt('index.ts'))
  expect(names).toEqual(expect.arrayContaining(Object.keys(api)))
  expect(names.filter((name) => !isNamed(name))).toEqual([])
})

test('every method and property of the classes is on the page', () => {
  const members = [LiveSession, LiveSessions, Pairing, TokenStore].flatMap(({ name, prototype }) =>
    Object.getOwnPropertyNames(prototype).map((member) => ({ name, member })),
  )
  expect(members.filter(({ member }) => member !== 'constructor' && !isNamed(member))).toEqual([])
})

test('every option of a server and of live sessions has a row, and no other', () => {
  expect(new Set(rowsOf(sectionOf('Starting')))).toEqual(new Set(membersOf('server-options.ts', 'ServerOptions')))
  expect(new Set(rowsOf(sectionOf('Options of live sessions')))).toEqual(
    new Set(membersOf('live/live-sessions.ts', 'LiveSessionsOptions')),
  )
})

test('every member of a driver is on the page', () => {
  expect(membersOf('live/driver.ts', 'SessionDriver').filter((name) => !isNamed(name))).toEqual([])
})

test('every type of problem has a row in the page of errors, with its status', () => {
  const here = new URL('.', import.meta.url).pathname
  const files = globSync('**/*.ts', { cwd: here, exclude: ['**/*.test.ts', '**/testing/**'] })
  const thrown = files.flatMap((file) =>
    Array.from(textAt(file).matchAll(/RequestProblem\(\s*(\d{3}),\s*'([a-z-]+)'/g), ([, status, type]) => ({
      type,
      status,
    })),
  )
  const problems = sectionOf('Problems', textAt('../../../docs/reference/errors.md'))
  const rows = new Map(
    Array.from(problems.matchAll(/^\| `([a-z-]+)` +\| ([\d, ]+?) +\|/gm), ([, type, statuses = '']) => [
      type,
      statuses,
    ]),
  )
  expect(thrown.length).toBeGreaterThan(30)
  expect(thrown.filter(({ type, status = '' }) => !rows.get(type)?.split(', ').includes(status))).toEqual([])
})

function textAt(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

function exportsOf(source: string): string[] {
  const lists = Array.from(source.matchAll(/export (?:type )?\{([^}]*)\}/g), ([, names = '']) => names.split(','))
  const names = lists.flat().map((name) => name.trim().replace(/^type /, ''))
  return names.filter((name) => name !== '')
}

/** The members of an interface, at its own level. */
function membersOf(path: string, name: string): string[] {
  const [, rest = ''] = textAt(path).split(`export interface ${name} {`)
  const body = rest.slice(0, rest.indexOf('\n}\n'))
  return Array.from(body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm), ([, member]) => member as string)
}

/** From a heading of the second level to the next. */
function sectionOf(heading: string, text = page): string {
  const start = text.indexOf(`\n## ${heading}\n`)
  const end = text.indexOf('\n## ', start + 1)
  return text.slice(start, end === -1 ? undefined : end)
}

/** The first column. */
function rowsOf(text: string): string[] {
  return Array.from(text.matchAll(/^\| `([A-Za-z]+)` +\|/gm), ([, name]) => name as string)
}

/** At the start of a code span, as in `open(id)`. */
function isNamed(name: string): boolean {
  return new RegExp(`[\`\\s{]${name}\\b`).test(page)
}
