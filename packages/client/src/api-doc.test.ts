// The API page is written by hand. These tests fail if a public name is missing from it.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as api from './index.ts'
import * as protocol from './protocol/index.ts'

const page = textAt('../../../docs/reference/client-api.md')

test('every exported name is on the page', () => {
  const names = [...exportsOf(textAt('index.ts')), ...exportsOf(textAt('protocol/index.ts'))]
  expect(names).toEqual(expect.arrayContaining([...Object.keys(api), ...Object.keys(protocol)]))
  expect(names.filter((name) => !isNamed(name))).toEqual([])
})

test('every method and property of the classes is on the page', () => {
  const classes = [api.ProblemError, api.RemoteSession, api.RemoteSessions, api.RestClient, api.SessionCommands]
  const members = classes.flatMap(({ name, prototype }) =>
    Object.getOwnPropertyNames(prototype).map((member) => ({ name, member })),
  )
  expect(members.filter(({ member }) => member !== 'constructor' && !isNamed(member))).toEqual([])
})

test('every member of a handle is on the page', () => {
  const source = textAt('session-handle.ts')
  const handle = source.slice(source.indexOf('export interface SessionHandle'), source.indexOf('\n}\n'))
  const members = Array.from(handle.matchAll(/^ {2}(?:readonly )?(\w+)[:(<]/gm), ([, name]) => name as string)
  expect(members).toContain('changeQueue')
  expect(members.filter((name) => !isNamed(name))).toEqual([])
})

test('every local problem has a row in the page of errors', () => {
  const [, union = ''] = textAt('problem-error.ts').split('export type LocalProblem =')
  const types = Array.from(union.slice(0, union.indexOf('\n\n')).matchAll(/'([a-z-]+)'/g), ([, type]) => type as string)
  const errors = textAt('../../../docs/reference/errors.md')
  expect(types).toContain('unreachable')
  expect(types.filter((type) => !new RegExp(`^\\| \`${type}\` +\\|`, 'm').test(errors))).toEqual([])
})

function textAt(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

function exportsOf(source: string): string[] {
  const lists = Array.from(source.matchAll(/export (?:type )?\{([^}]*)\}/g), ([, names = '']) => names.split(','))
  const names = lists.flat().map((name) => name.trim().replace(/^type /, ''))
  return names.filter((name) => name !== '')
}

/** At the start of a code span, as in `open(id)`. */
function isNamed(name: string): boolean {
  return new RegExp(`[\`\\s{]${name}\\b`).test(page)
}
