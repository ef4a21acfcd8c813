import { expect, test } from 'vitest'
import { SessionStore } from '../store/session-store.ts'
import { MemoryLogStore } from '../stores/memory/memory-store.ts'
import { user } from '../testing/builders.ts'
import { changedPort } from '../testing/changed-port.ts'
import type { DerivedData } from './log-store.ts'

test('saves that wait for one under way become one, with the newest state', async () => {
  const gate = Promise.withResolvers<void>()
  const { store, saves } = setUp(() => gate.promise)
  const session = await store.create()
  await user(session, 'one')
  const waiting = [session.saveDerived()]
  await reached(() => saves.length === 1)
  await user(session, 'two')
  waiting.push(session.saveDerived(), session.saveDerived())
  await user(session, 'three')
  waiting.push(session.saveDerived())
  gate.resolve()
  await Promise.all(waiting)
  await session.close()
  expect(saves.map(({ metadata = '' }) => (JSON.parse(metadata) as { messageCount: number }).messageCount)).toEqual([
    1, 3,
  ])
})

test('after a save that failed, all pieces are saved again', async () => {
  let failures = 1
  const { store, saves } = setUp(async () => {
    if (failures-- === 1) throw new Error('full')
  })
  const session = await store.create()
  await Promise.all(Array.from({ length: 2600 }, (_, index) => user(session, `${index}`)))
  const changed = []
  for (let turn = 0; turn < 3; turn++) {
    await session.saveDerived()
    changed.push([...(saves.splice(0)[0]?.checkpoint?.changed.keys() ?? [])].toSorted((left, right) => left - right))
  }
  expect(changed).toEqual([[0, 1, 2], [0, 1, 2], [0]])
  await session.close()
})

function setUp(before: () => Promise<void>): { store: SessionStore; saves: DerivedData[] } {
  const saves: DerivedData[] = []
  const port = changedPort(new MemoryLogStore(), {
    log: (log) => ({
      saveDerived: async (data) => {
        saves.push(data)
        await before()
        await log.saveDerived(data)
      },
    }),
  })
  return { store: new SessionStore(port), saves }
}

async function reached(isReached: () => boolean): Promise<void> {
  while (!isReached()) await new Promise(setImmediate)
}
