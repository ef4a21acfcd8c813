import { getEventListeners } from 'node:events'
import { memoryStore } from '@tapetree/session'
import { expect, test } from 'vitest'
import { Requests } from './requests.ts'

const question = { runId: 'run', tool: 'bash', title: 'May it run?', input: {}, options: [] }

test('an answered request leaves no listener on its signal', async () => {
  await using session = await memoryStore().create()
  const requests = new Requests(session)
  const { signal } = new AbortController()
  const asked = new Promise<string>((resolve) => {
    session.subscribe(({ line }) => line.type === 'permission_request' && resolve(line.permissionRequest.requestId))
  })
  const answer = requests.ask({ ...question, callId: 'a' }, signal)
  await requests.answer({ requestId: await asked, outcome: 'allowed' })
  expect(await answer).toMatchObject({ outcome: 'allowed' })
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('the first answer of the last thousand requests is remembered', async () => {
  await using session = await memoryStore().create()
  const requests = new Requests(session)
  const ids = Array.from({ length: 1001 }, (_, index) => `request-${index}`)
  for (const requestId of ids) {
    await session.append({ type: 'permission_request', permissionRequest: { ...question, requestId } })
    await requests.answer({ requestId, outcome: 'rejected' })
  }
  expect(await requests.answer({ requestId: ids[0]!, outcome: 'allowed' })).toEqual({ type: 'too-late', by: undefined })
  expect(await requests.answer({ requestId: ids[1]!, outcome: 'allowed' })).toEqual({
    type: 'too-late',
    by: { requestId: ids[1], outcome: 'rejected' },
  })
})

test('an answer after a restart, before the call asks again, answers that call and no other', async () => {
  await using session = await memoryStore().create()
  const waiting = { ...question, callId: 'a', requestId: 'asked-before' }
  await session.append({ type: 'permission_request', permissionRequest: waiting })
  const requests = new Requests(session)
  await requests.answer({ requestId: 'asked-before', outcome: 'allowed' })
  const { signal } = new AbortController()
  const other = requests.ask({ ...question, callId: 'a', input: { command: 'another' } }, signal)
  expect(await requests.ask({ ...question, callId: 'a' }, signal)).toMatchObject({ requestId: 'asked-before' })
  await expect.poll(() => requests.pending).toHaveLength(1)
  await requests.answer({ requestId: requests.pending[0]!.requestId, outcome: 'rejected' })
  expect(await other).toMatchObject({ outcome: 'rejected' })
})

test.each([
  ['another input', { input: { command: 'another' } }],
  ['another title', { title: 'May it run outside of the sandbox?' }],
])('a request of an earlier process is withdrawn if the call asks with %s now', async (_, changed) => {
  await using session = await memoryStore().create()
  const waiting = { ...question, callId: 'a', requestId: 'asked-before' }
  await session.append({ type: 'permission_request', permissionRequest: waiting })
  const requests = new Requests(session)
  const asked = requests.ask({ ...question, callId: 'a', ...changed }, new AbortController().signal)
  await expect.poll(() => requests.pending).toMatchObject([changed])
  expect(await requests.answer({ requestId: 'asked-before', outcome: 'allowed' })).toMatchObject({ type: 'too-late' })
  await requests.answer({ requestId: requests.pending[0]!.requestId, outcome: 'rejected' })
  expect(await asked).toMatchObject({ outcome: 'rejected' })
})

test('a call that asks again while the answer is being written gets that answer', async () => {
  await using session = await memoryStore().create()
  const waiting = { ...question, callId: 'a', requestId: 'asked-before' }
  await session.append({ type: 'permission_request', permissionRequest: waiting })
  const requests = new Requests(session)
  const { signal } = new AbortController()
  const answering = requests.answer({ requestId: 'asked-before', outcome: 'allowed' })
  expect(await requests.ask({ ...question, callId: 'a' }, signal)).toMatchObject({ requestId: 'asked-before' })
  await answering
  const later = requests.ask({ ...question, callId: 'a' }, signal)
  await expect.poll(() => requests.pending).toHaveLength(1)
  await requests.answer({ requestId: requests.pending[0]!.requestId, outcome: 'rejected' })
  expect(await later).toMatchObject({ outcome: 'rejected' })
})

test('a second answer while the first is being written is told who was first', async () => {
  await using session = await memoryStore().create()
  await session.append({ type: 'permission_request', permissionRequest: { ...question, requestId: 'asked' } })
  const requests = new Requests(session)
  const first = requests.answer({ requestId: 'asked', outcome: 'rejected' })
  expect(await requests.answer({ requestId: 'asked', outcome: 'allowed' })).toEqual({
    type: 'too-late',
    by: { requestId: 'asked', outcome: 'rejected' },
  })
  expect(await first).toEqual({ type: 'taken' })
})

test('a request that was withdrawn without a waiting call answers nothing later', async () => {
  await using session = await memoryStore().create()
  const waiting = { ...question, callId: 'a', requestId: 'asked-before' }
  await session.append({ type: 'permission_request', permissionRequest: waiting })
  const requests = new Requests(session)
  await requests.answer({ requestId: 'asked-before', outcome: 'cancelled' })
  const asked = requests.ask({ ...question, callId: 'a' }, new AbortController().signal)
  await expect.poll(() => requests.pending).toHaveLength(1)
  await requests.answer({ requestId: requests.pending[0]!.requestId, outcome: 'allowed' })
  expect(await asked).toMatchObject({ outcome: 'allowed' })
})
