import type { FakeAnswer } from '@tapetree/agent/testing'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../host/open-store.ts'
import { SessionHost } from '../host/session-host.ts'
import { placesOf } from '../host/places.ts'
import { bundle, runBundle } from '../testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'

let home: FakeHome
let host: SessionHost
beforeEach(async () => {
  home = await fakeHome()
  // Like another run, without a user.
  const store = await openStore(placesOf(home))
  host = await SessionHost.open({ io: home, store, owner: 'terminal', clientName: 'run' })
})
afterEach(async () => {
  await host.close()
  await home[Symbol.asyncDispose]()
})

const say = (words: string, gate?: string): FakeAnswer => ({
  type: 'answer',
  content: [...(gate === undefined ? [] : [{ type: 'wait' as const, gate }]), { type: 'text', chunks: [words] }],
})

test('a run does not refuse requests of another run', async () => {
  home.provider.script(
    {
      type: 'answer',
      content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: ['{"command":"touch made"}'] }],
    },
    say('Theirs.'),
    say('Ours.'),
  )
  const { handle } = await host.open(await host.create({ cwd: home.cwd }))
  await host.listen()
  await handle.prompt('theirs')
  await expect.poll(() => handle.transcript.permissions.length).toBe(1)
  const ours = runBundle(home, ['run', '--session', handle.sessionId, 'ours'])
  await expect.poll(() => handle.transcript.waiting.length, { timeout: 20_000 }).toBe(1)
  const [asked] = handle.transcript.permissions
  await handle.answer(asked?.requestId ?? '', { optionId: 'allow_once' })
  expect(await ours).toMatchObject({ code: 0, stdout: 'Ours.\n' })
})

test('the owner of the session stays until the prompts of others are done', async () => {
  home.provider.script(say('Ours.', 'first'), say('Theirs.', 'second'))
  const owner = spawn(process.execPath, [bundle, 'run', '--jsonl', 'ours'], { cwd: home.cwd, env: home.env })
  owner.stdin.end()
  const ended = once(owner, 'close')
  let said = ''
  owner.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const lines = createInterface({ input: owner.stdout })
  const [header] = (await once(lines, 'line')) as [string]
  const { id } = JSON.parse(header) as { id: string }
  await home.provider.request(1)
  const { handle, access } = await host.open(id)
  expect(access.type).toBe('attached')
  await handle.prompt('theirs')
  home.provider.release('first')
  await home.provider.request(2)
  await expect.poll(() => handle.transcript.lastRun?.outcome).toBe('completed')
  await expect.poll(() => said).toContain('Waiting for the prompts of others in this session')
  home.provider.release('second')
  const [code] = await ended
  expect(code).toBe(0)
  const store = await openStore(placesOf(home))
  await using session = await store.open(id, { readOnly: true })
  expect(session.openRun).toBeNull()
  expect(JSON.stringify((await session.getContext()).messages)).toContain('Theirs.')
  await store.close()
})
