import { RegistryError } from '@tapetree/agent/models'
import { SettingsError } from '@tapetree/agent/settings'
import { ProblemError } from '@tapetree/client'
import { RequestProblem } from '@tapetree/server'
import { SessionError } from '@tapetree/session'
import { expect, test } from 'vitest'
import { failureOf } from './failure-of.ts'
import { OutputError } from './io.ts'

test.each([
  [new SessionError('session-not-found', 'No.'), 5],
  [new SessionError('session-owned', 'No.'), 6],
  [new SessionError('blob-missing', 'No.'), 7],
  [new RegistryError('missing-key', 'No.'), 4],
  [new SettingsError('malformed-file', 'No.'), 3],
  [new ProblemError({ type: 'model-not-usable', title: 'No', status: 409 }), 4],
  [new RequestProblem(409, 'model-not-usable', 'No.'), 4],
  [new RequestProblem(404, 'request-not-found', 'No.'), 5],
  [Object.assign(new Error('No.'), { code: 'ENOENT' }), 5],
  [Object.assign(new Error('No.'), { code: 'ENOSPC' }), 3],
  [new OutputError(Object.assign(new Error('No.'), { code: 'EIO' }), { isTTY: false }), 3],
  [new DOMException('No.', 'AbortError'), 130],
  [new Error('No.'), 1],
])('%s ends with its exit code', (error, code) => {
  expect(failureOf(error).code).toBe(code)
})

test('a missing key names the commands that help', () => {
  expect(failureOf(new RegistryError('missing-key', 'No key.')).next).toEqual([
    'tapetree login <provider>',
    'tapetree tour',
  ])
})

test('an error about a path names the path and a helpful command', () => {
  const error = Object.assign(new Error('ENOTDIR: not a directory'), {
    code: 'ENOTDIR',
    path: '/home/ann/file/sessions',
  })
  expect(failureOf(error)).toMatchObject({
    code: 3,
    message: '/home/ann/file/sessions: Part of this path is a file, not a folder.',
    next: ['tapetree doctor'],
  })
})
