import { expect, test } from 'vitest'
import { isPausing, serverText, toldDiagnostics, type ShownServer } from './diagnostics.ts'

const told = (...lines: string[]): string =>
  ['<diagnostics>', 'After your changes there are new errors:', ...lines, '</diagnostics>'].join('\n')

test.each([
  [['a.ts:1:14 error: No. (ts 2322)'], '1 error in a.ts'],
  [['src/a.ts:1:1 error: b.ts:2:2 error: x', 'src/a.ts:2:1 error: No.'], '2 errors in src/a.ts'],
  [['a.ts:1:1 error: No.', 'a.ts: and 40 more', 'b.ts:1:1 error: No.'], '42 errors in 2 files'],
  [['a.ts:1:1 error: No.', '[34 more lines are left out.]'], 'More than 1 error in a.ts'],
])('what the model was told has a title: %j', (lines, title) => {
  expect(toldDiagnostics(told(...lines))).toEqual({ title, lines })
})

test.each(['', 'Hello', '<environment>\nToday is Monday.\n</environment>', `${told('a.ts:1:1 error: No.')} and more`])(
  'another message to the model is none: %j',
  (text) => expect(toldDiagnostics(text)).toBeUndefined(),
)

const now = Date.parse('2026-01-01T00:00:00Z')
const server = { name: 'typescript', status: 'running', errors: 0, warnings: 0 } as const

test.each<[Partial<ShownServer>, string]>([
  [{ status: 'starting' }, 'typescript starting'],
  [{}, 'typescript no errors'],
  [{ errors: 2 }, 'typescript 2 errors'],
  [{ errors: 1, warnings: 1 }, 'typescript 1 error, 1 warning'],
  [{ status: 'failed', retryAt: '2026-01-01T00:00:03.200Z' }, 'typescript failed, can restart in 4 s'],
  [{ status: 'failed', retryAt: '2026-01-01T00:00:00Z' }, 'typescript failed, restarts with the next edit'],
  [{ status: 'failed', retryAt: null }, 'typescript failed, not restarted'],
])('the state of a language server in a few words: %j', (state, text) => {
  expect(serverText({ ...server, ...state }, now)).toBe(text)
  expect(isPausing({ ...server, ...state }, now)).toBe(text.includes(' in 4 s'))
})
