import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { answerProblems, ToolProblem } from './tool-problem.ts'

test('a problem is the result of the call', async () => {
  const work = () => Promise.reject(new ToolProblem('There is no such thing.'))
  expect(await answerProblems(work)).toEqual({ content: 'There is no such thing.', isError: true })
})

test('an error of the file system becomes a sentence', async () => {
  const work = async () => ({ content: await readFile('/does/not/exist', 'utf8') })
  expect(await answerProblems(work)).toEqual({
    content: 'There is no such file or folder: /does/not/exist.',
    isError: true,
  })
})

test('an internal path is not shown', async () => {
  const error = Object.assign(new Error('ENOSPC'), {
    code: 'ENOSPC',
    errno: -28,
    syscall: 'write',
    path: '/proc/self/fd/7/x',
  })
  expect((await answerProblems(() => Promise.reject(error))).content).toBe('No space is left on the disk.')
})

test('any other error is not the result of the call', async () => {
  await expect(answerProblems(() => Promise.reject(new TypeError('a bug')))).rejects.toThrow('a bug')
})
