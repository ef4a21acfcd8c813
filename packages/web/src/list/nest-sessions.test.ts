import type { SessionSummary } from '@tapetree/client'
import { expect, test } from 'vitest'
import { nestSessions } from './nest-sessions.ts'

function summary(id: string, more: Partial<SessionSummary> = {}): SessionSummary {
  const time = '2026-11-16T00:00:00Z'
  const counts = { messageCount: 0, queueLength: 0, cost: 0 }
  return { id, name: id, created: time, modified: time, status: 'idle', damaged: false, ...counts, ...more }
}

const rows = [
  summary('newest'),
  summary('second-child', { subagent: true, parentSession: 'parent' }),
  summary('first-child', { subagent: true, parentSession: 'parent' }),
  summary('fork', { parentSession: 'parent' }),
  summary('parent'),
  summary('lost', { subagent: true, parentSession: 'not loaded' }),
  summary('grandchild', { subagent: true, parentSession: 'first-child' }),
]

function shown(isExpanded: (session: SessionSummary) => boolean): string[] {
  return nestSessions(rows, isExpanded).map(({ session, depth }) => '-'.repeat(depth) + session.id)
}

test('subagents stand below their parents, oldest first, and forks stay where they are', () => {
  expect(shown(() => true)).toEqual([
    'newest',
    'fork',
    'parent',
    '-first-child',
    '--grandchild',
    '-second-child',
    'lost',
  ])
})

test('a parent that is not expanded hides its subagents and counts them', () => {
  expect(shown(() => false)).toEqual(['newest', 'fork', 'parent', 'lost'])
  expect(nestSessions(rows, () => false).find(({ session }) => session.id === 'parent')).toMatchObject({
    childCount: 2,
    isExpanded: false,
  })
})
