import type { FakeAnswer } from '@tapetree/agent/testing'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { openStore } from '../host/open-store.ts'
import { SessionHost } from '../host/session-host.ts'
import { placesOf } from '../host/places.ts'
import { bundle } from '../testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo } from '../testing/test-io.ts'

let home: FakeHome
const children: ChildProcessWithoutNullStreams[] = []
beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await home[Symbol.asyncDispose]()
})

const say = (text: string): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks: [text] }] })
const bash = (command: string): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: [JSON.stringify({ command })] }],
})
const isSent = (index: number, words: string): boolean =>
  JSON.stringify(home.provider.requests[index]?.body).includes(words)

function start(...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [bundle, 'run', ...args], { cwd: home.cwd, env: home.env })
  children.push(child)
  child.stdin.end()
  return child
}

/** Kills the process as soon as it has printed such a line. Returns the id of its session. */
async function killedAt(child: ChildProcessWithoutNullStreams, type: string): Promise<string> {
  let id = ''
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as { type: string; id: string }
    if (line.type === 'session') ({ id } = line)
    if (line.type === type) child.kill('SIGKILL')
  }
  return id
}

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = testIo({ env: home.env, cwd: home.cwd, home: home.home })
  const code = await runCli(['run', ...args], io)
  return { code, out: io.out(), err: io.err() }
}

test('a run killed during a command is resumed before the prompt, with the real result of the command', async () => {
  home.provider.script(bash('sleep 1; echo late | tee -a effect'), say('It is late.'), say('On we go.'))
  const id = await killedAt(start('--jsonl', 'go'), 'tool_start')
  const { code, out, err } = await run('--session', id, 'What next?')
  expect({ code, out }).toEqual({ code: 0, out: 'On we go.\n' })
  expect(err).toContain('Resuming it before the prompt')
  expect([isSent(1, '"late"'), isSent(1, 'What next?'), isSent(2, 'What next?')]).toEqual([true, false, true])
  expect(await readFile(join(home.cwd, 'effect'), 'utf8')).toBe('late\n')
  expect(await readdir(join(placesOf(home).sessions, id, 'spool'))).toEqual([])
})

test('a run interrupted while it waits for an answer stays untouched, until the writer of stdin can answer', async () => {
  home.provider.script(bash('touch made'))
  const store = await openStore(placesOf(home))
  const flags = { permissions: { mode: 'ask' } } as const
  const host = await SessionHost.open({ io: home, store, owner: 'terminal', flags })
  const id = await host.create({ cwd: home.cwd })
  const { handle } = await host.open(id)
  await handle.prompt('go')
  await expect.poll(() => handle.transcript.permissions.length).toBe(1)
  await host.close()
  const { code, err } = await run('--session', id, 'Go on')
  expect(code).toBe(9)
  expect(err).toContain('touch made')
  expect(err).toContain(`tapetree --session ${id}`)
  await using session = await store.open(id, { readOnly: true })
  expect(session.openRun).not.toBeNull()
  expect(session.pendingPermissions).toHaveLength(1)
  await store.close()
  home.provider.script(say('Made.'), say('On we go.'))
  const requestId = session.pendingPermissions[0]?.requestId
  const stdin = [
    { type: 'prompt', text: 'Next' },
    { type: 'answer', request_id: requestId, option_id: 'allow_once' },
  ]
  const io = testIo({
    env: home.env,
    cwd: home.cwd,
    home: home.home,
    stdin: stdin.map((line) => `${JSON.stringify(line)}\n`).join(''),
  })
  expect(await runCli(['run', '--session', id, '--input', 'jsonl'], io)).toBe(0)
  expect(io.out()).toBe('On we go.\n')
  expect(await readdir(home.cwd)).toEqual(['made'])
})

test('when the owner is killed, a waiting process owns the session next and finishes both runs', async () => {
  home.provider.script(
    {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['Half '] },
        { type: 'wait', gate: 'never' },
      ],
    },
    say('The first.'),
    say('The second.'),
  )
  const owner = start('--jsonl', 'one')
  const ended = once(owner, 'close')
  const [header] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string]
  const { id } = JSON.parse(header) as { id: string }
  await home.provider.request(1)
  const io = testIo({ env: home.env, cwd: home.cwd, home: home.home })
  const follower = runCli(['run', '--session', id, 'two'], io)
  const log = join(placesOf(home).sessions, id, 'events.jsonl')
  await expect.poll(() => readFile(log, 'utf8'), { timeout: 20_000 }).toContain('"two"')
  owner.kill('SIGKILL')
  await ended
  expect({ code: await follower, out: io.out(), err: io.err() }).toEqual({
    code: 0,
    out: 'The second.\n',
    err: `· Session ${id}, in process ${owner.pid}\n`,
  })
  expect(home.provider.requests).toHaveLength(3)
})

test('a run in a session whose files were only partly put back says so, and how to end it', async () => {
  home.provider.script(say('Hello.'), say('Hello again.'))
  await run('--json', 'go')
  const store = await openStore(placesOf(home))
  const { id = '' } = (await store.list()).sessions[0] ?? {}
  {
    await using session = await store.open(id)
    await session.append({ type: 'restore', restore: { restoreId: 'r', phase: 'start', from: 'a', to: 'b' } })
  }
  const { code, err } = await run('--session', id, 'go on')
  expect(code).toBe(0)
  expect(err).toContain('Putting files back was interrupted')
  expect(err).toContain(`tapetree sessions rewind ${id} --interrupted finish`)
})
