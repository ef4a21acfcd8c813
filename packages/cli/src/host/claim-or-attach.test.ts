import { user } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { openStore } from './open-store.ts'
import { startChild } from './testing/child.ts'
import { placesOf } from './places.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo } from '../testing/test-io.ts'

test('the process that has a session open renames and labels it on request', async () => {
  await using home = await fakeHome()
  const sessionId = await newSession(home)
  await using owner = startChild(new URL('./testing/owner-process.ts', import.meta.url), [home.cwd, sessionId], home)
  expect(JSON.parse(await owner.line())).toEqual({ sessionId, access: 'owner' })
  const run = async (...args: string[]): Promise<Record<string, unknown>> => {
    const io = testIo({ cwd: home.cwd, home: home.home, env: home.env })
    expect([await runCli(['sessions', ...args, '--json'], io), io.err()]).toEqual([0, ''])
    return JSON.parse(io.out()) as Record<string, unknown>
  }
  await run('rename', sessionId, 'from', 'outside')
  const { entry_id: entryId } = await run('label', sessionId, '3', 'marked')
  expect(await run('show', sessionId)).toMatchObject({ name: 'from outside', labels: { [String(entryId)]: 'marked' } })
  const io = testIo({ cwd: home.cwd, home: home.home, env: home.env })
  expect([await runCli(['sessions', 'delete', sessionId], io), io.err()]).toEqual([
    6,
    expect.stringContaining(`tapetree attach ${sessionId}`),
  ])
})

async function newSession(home: FakeHome): Promise<string> {
  const store = await openStore(placesOf(home))
  await using session = await store.create({ cwd: home.cwd })
  await user(session, 'hello')
  return session.id
}
