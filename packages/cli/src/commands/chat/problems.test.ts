import { expect, test } from 'vitest'
import { ChatProblems } from './problems.ts'

test('what goes wrong beside a conversation is told once, above it or while it runs, and never to nobody', () => {
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
