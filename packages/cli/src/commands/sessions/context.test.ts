import { openCodingAgent } from '@tapetree/agent'
import { openFileStore } from '@tapetree/session/stores/file'
import { assistant, call, user } from '@tapetree/session/testing'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { SessionHome } from '../../testing/session-home.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

test('every message is shown with its entry, and with what a compaction replaced', async () => {
  await using home = await SessionHome.make()
  const id = await home.session(async (session) => {
    await session.append({
      type: 'system',
      system: { prompt: 'Be kind.', tools: [{ name: 'read', description: 'reads', inputSchema: {} }], sha256: 'x' },
    })
    await user(session, 'old question')
    await assistant(session, 'old answer')
    const kept = await user(session, 'new question')
    await session.appendCompaction('they spoke', kept, 1000)
    await session.appendMessage('bashExecution', [], {
      with: { bashExecution: { command: 'ls', output: '', excludeFromContext: true } },
    })
    await assistant(session, 'reading', call('c1'))
  })
  const { out } = await home.run(['sessions', 'context', id])
  const headings = out.split('\n').filter((line) => line.startsWith('── '))
  expect(headings.map((line) => line.replace(/ \([^)]*\)/, ''))).toEqual([
    '── system prompt, entry 3',
    '── 1 tool, entry 3',
    '── 1. compactionSummary, entry 7: replaces 3 entries, 3 to 5',
    '── 2. user, entry 6',
    '── 3. assistant, entry 9',
    '── 4. tool, entry 9: synthetic, because the call has no result on this branch',
    '── not sent: 1 message of the path',
    '── repaired so that a provider accepts it',
  ])
  const before = await home.json('sessions', 'context', id, '--at', '5')
  expect(before).toMatchObject({ request: null, replaced: null, context: { messages: [{}, {}] } })
})

test('at an answer it shows the context of the answer, and the rebuilt request is identical', async () => {
  await using home = await fakeHome()
  home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['Hello.'] }] })
  const store = openFileStore({ folder: join(home.env['TAPETREE_HOME'] ?? '', 'sessions') })
  const agent = await openCodingAgent({ store, cwd: home.cwd, home: home.home, env: home.env })
  const outcome = await agent.session.prompt('Hi there')
  if (outcome.type === 'started') await outcome.run.done
  const { id: sessionId, leafId } = agent.session.session
  await agent.close()
  await store.close()
  const io = testIo({ cwd: home.cwd, home: home.home, env: { ...home.env, FAKE_API_KEY: undefined } })
  expect(await runCli(['sessions', 'context', sessionId, '--at', String(leafId)], io)).toBe(0)
  expect(io.out()).toMatch(new RegExp(`the context of answer \\d+ \\(${String(leafId)}\\)`))
  expect(io.out()).toMatch(/request {4}sha256 [0-9a-f]{64} by /)
  expect(io.out()).toContain('rebuilt    identical, byte for byte.')
})
