import { expect, test } from 'vitest'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { said, user } from '../testing/builders.ts'

test('a pack of a session that grows while it is read has the blobs of all its lines', async () => {
  await using store = memoryStore()
  const session = await store.create()
  await user(session, 'first '.repeat(60_000))
  const before = await said(session)
  async function* packWhileGrowing(): AsyncIterable<Uint8Array> {
    let parts = 0
    for await (const part of store.pack(session.id)) {
      // The second part begins the blobs, so all lines were read once.
      if (++parts === 2) await user(session, 'second '.repeat(60_000))
      yield part
    }
  }
  const copy = await store.unpack(packWhileGrowing())
  expect(await said(copy)).toEqual(before)
  expect((await store.verify(copy.id)).isIntact).toBe(true)
})
