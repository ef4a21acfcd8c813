import { expect, test } from 'vitest'
import { ChatProblems } from './problems.ts'

test('a problem outside a conversation is shown once, above it or while it runs, and is never lost', () => {
  const problems = new ChatProblems()
  problems.add('github: does not start')
  problems.add('github: does not start')
  expect(problems.take()).toEqual(['github: does not start'])
  // Between the notices and the first frame.
  problems.add('socket: no room')
  const told: string[] = []
  problems.listen((sentence) => told.push(sentence))
  problems.add('github: does not start')
  problems.add('github: has ended')
  expect(told).toEqual(['socket: no room', 'github: has ended'])
})
