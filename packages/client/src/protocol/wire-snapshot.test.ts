import { memoryStore, text } from '@tapetree/session'
import type { SessionSnapshot } from '@tapetree/session/view'
import { expect, test } from 'vitest'
import { snapshotFromWire, snapshotToWire } from './wire-snapshot.ts'

/** A session whose fold has a value in every member. */
async function fullSnapshot(): Promise<SessionSnapshot> {
  await using session = await memoryStore().create({ cwd: '/', parentSession: 'older' })
  const leafId = await session.appendMessage('user', [text('Go.')])
  await session.setLabel(leafId, 'start')
  await session.append({ type: 'run_start', runStart: { runId: 'one', leafId } })
  await session.append({ type: 'run_end', runEnd: { runId: 'one', outcome: 'completed', durationMs: 7 } })
  const runStart = { runId: 'two', leafId, resumes: 'one', spent: { some_tool: 1, otherTool: 2 } }
  await session.append({ type: 'run_start', runStart })
  await session.append({ type: 'plan', plan: { items: [{ text: 'Look around', status: 'pending' }] } })
  await session.append({ type: 'error', error: { message: 'Too much.', kind: 'overloaded', runId: 'two' } })
  await session.append({ type: 'tool_start', toolStart: { runId: 'two', callId: 'c', name: 'act' } })
  await session.append({
    type: 'permission_request',
    permissionRequest: {
      requestId: 'p',
      runId: 'two',
      callId: 'c',
      tool: 'act',
      title: 'May I?',
      input: { file_path: 'a', keepsItsName: { as_it: 'is' } },
      options: [{ optionId: 'yes', label: 'Yes', kind: 'allow_once' }],
    },
  })
  await session.submit('And then?', { delivery: 'follow-up', imageIds: ['i'], clientId: 'tab' })
  await session.changeInbox({ action: 'hold', reason: 'wait' })
  return await session.snapshot({ entries: 10 })
}

test('a snapshot is the same after a round trip over the wire', async () => {
  const snapshot = await fullSnapshot()
  const { fold } = snapshot
  expect(Object.entries(fold).filter(([, value]) => value === null || value.length === 0)).toEqual([
    ['name', ''],
    ['ended', null],
  ])
  const sent = JSON.stringify(snapshotToWire(snapshot))
  expect(snapshotFromWire(JSON.parse(sent))).toMatchObject({ head: snapshot.head, leafId: snapshot.leafId, fold })
})

test('every member of a snapshot is in snake_case, except foreign ones', async () => {
  const sent = snapshotToWire(await fullSnapshot())
  const names = (value: unknown): string[] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, inner]) => [name, ...names(inner)])
      : []
  expect(names(sent).filter((name) => /[A-Z]/.test(name))).toEqual(['keepsItsName', 'otherTool'])
})

test('members of a newer version keep their names', async () => {
  const snapshot = await fullSnapshot()
  const header = {
    ...snapshot.fold.header,
    some_thing: 1,
    otherThing: { as_it: 'is' },
  } as SessionSnapshot['fold']['header']
  const sent = snapshotToWire({ ...snapshot, fold: { ...snapshot.fold, header } })
  expect(snapshotFromWire(sent).fold.header).toEqual(header)
})
