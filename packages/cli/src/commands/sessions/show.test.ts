import { memoryStore, type Session } from '@tapetree/session'
import { assistant, user } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { segmentsOf } from '../../sessions/segments.ts'
import { treeLines } from './show.ts'

async function drawn(session: Session, subagents = new Map<string, string[]>()): Promise<string[]> {
  return [...treeLines(await session.getTree(), { leafId: session.leafId, subagents, width: 60 })]
}

test('branches are indented below their entry, and the path stays at the left', async () => {
  await using session = await memoryStore().create()
  const first = await user(session, 'first')
  const left = await assistant(session, 'left answer')
  await user(session, 'left question')
  await session.branch(left)
  await user(session, 'inner branch')
  await session.branch(first)
  await assistant(session, 'right answer')
  await session.setLabel(first, 'start \u001b[2J')
  expect(await drawn(session, new Map([[left, ['child-1']]]))).toEqual([
    '● 3 [start ␛[2J] user  first',
    '├─ ○ 4 (subagent child-1) assistant  left answer',
    '│  ├─ ○ 5 user  left question',
    '│  ○ 7 user  inner branch',
    '◉ 9 assistant  right answer',
  ])
})

test('after the leaf and before the first entry everything is a branch', async () => {
  await using session = await memoryStore().create()
  const first = await user(session, 'first')
  await assistant(session, 'answer')
  await session.branch(first)
  expect(await drawn(session)).toEqual(['◉ 3 user  first', '├─ ○ 4 assistant  answer'])
  await session.branch(null)
  expect(await drawn(session)).toEqual(['├─ ○ 3 user  first', '│  ○ 4 assistant  answer'])
  expect(segmentsOf(await session.getTree(), null).map(({ nodes }) => nodes.length)).toEqual([0, 2])
})
