import { expect, test } from 'vitest'
import { openStore } from '../../host/open-store.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { openChatHost } from './session.ts'
import { noticesOf } from './here.ts'
import { ChatProblems } from './problems.ts'

test('a misspelled setting is reported once', async () => {
  await using home = await fakeHome({ settings: { thinkingLevle: 'high' } })
  const io = testIo({ ...home, isTTY: true })
  const { settings } = await surroundingsOf(io, { cwd: home.cwd })
  const problems = new ChatProblems()
  const store = await openStore(placesOf(home))
  await using host = await openChatHost({ io, store, flags: {}, problems })
  // Opening a session reads the settings again.
  const { handle } = await host.openNew({ cwd: home.cwd, model: { provider: 'fake', modelId: 'model-1' } })
  await handle.close()
  const notices = noticesOf({ first: undefined, settings, problems: problems.take() })
  expect(notices.filter(({ text }) => text.includes('thinkingLevle'))).toHaveLength(1)
  await host.close()
  await store.close()
})
