import type { FakeAnswer } from '@tapetree/agent/testing'
import { appendFile, writeFile } from 'node:fs/promises'
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { openStore } from '../host/open-store.ts'
import { SessionHost } from '../host/session-host.ts'
import { placesOf } from '../host/places.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo, type TestIoOptions } from '../testing/test-io.ts'

/** Generous timeout for a busy machine. */
const patiently = { timeout: 30_000 }

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome()
})
afterEach(() => home[Symbol.asyncDispose]())

const say = (text: string): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'text', chunks: [text] }],
  usage: { input: 1000, output: 0 },
})
const calls = (name: string, input: object): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'tool_call', id: `c-${name}`, name, chunks: [JSON.stringify(input)] }],
  usage: { input: 1000, output: 0 },
})

async function run(args: string[], options: TestIoOptions = {}): Promise<{ code: number; out: string; err: string }> {
  const io = testIo({ env: home.env, cwd: home.cwd, home: home.home, ...options })
  const code = await runCli(['run', ...args], io)
  return { code, out: io.out(), err: io.err() }
}

async function madeSession(): Promise<string> {
  home.provider.script(say('Made.'))
  const { out } = await run(['--json', 'make'])
  return (JSON.parse(out) as { session_id: string }).session_id
}

const command = fileURLToPath(new URL('../../dist/bin/tapetree.js', import.meta.url))

/** The installed command, with nothing piped in. */
function start(args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [command, 'run', ...args], { cwd: home.cwd, env: home.env })
  child.stdin.end()
  return child
}

async function ended(
  child: ChildProcessWithoutNullStreams,
): Promise<{ code: number | null; out: string; err: string }> {
  const texts = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (texts.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (texts.err += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, ...texts }
}

async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

describe('run ends with', () => {
  test('1 if the model does not answer', patiently, async () => {
    home.provider.script({ type: 'failure', error: 'invalid-request', message: 'No such thing.' })
    const { code, out, err } = await run(['--json', 'go'])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({ outcome: 'failed', error: { type: 'invalid-request', code: 1 } })
    expect(err).toContain('No such thing.')
  })

  test('2 if the command line is invalid', async () => {
    expect(await run(['--modle', 'x', 'go'])).toMatchObject({ code: 2 })
    expect(await run([])).toMatchObject({ code: 2, err: expect.stringContaining('There is no prompt') as string })
    expect(await run(['--tools', 'hammer', 'go'])).toMatchObject({ code: 2 })
  })

  test('3 if the settings cannot be read', async () => {
    await writeFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), '{ "model": ')
    const { code, err } = await run(['go'])
    expect(code).toBe(3)
    expect(err).toContain('tapetree config show --origin')
  })

  test('4 if the model does not exist or the key is refused', patiently, async () => {
    expect(await run(['--model', 'anthropic/claude-opus-99', 'go'])).toMatchObject({ code: 4 })
    const { code, err } = await run(['--model', 'nosuch', 'go'])
    expect({ code, err }).toEqual({
      code: 4,
      err: 'tapetree: There is no model "nosuch". Available models include fake/model-1.\nTry:\n  tapetree models\n',
    })
    home.provider.script({ type: 'failure', error: 'auth' })
    expect(await run(['go'])).toMatchObject({ code: 4, err: expect.stringContaining('tapetree login') as string })
  })

  test('4 if there is no key, with the commands that help, and creates no session', patiently, async () => {
    await writeFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), '{}')
    const { code, err } = await run(['go'])
    expect(code).toBe(4)
    expect(err).toContain('tapetree login <provider>')
    expect(err).toContain('tapetree tour')
    const store = await openStore(placesOf(home))
    expect((await store.list()).sessions).toEqual([])
    await store.close()
  })

  test('5 if the session does not exist', async () => {
    const { code, err } = await run(['--session', 'no-such-session', 'go'])
    expect({ code, err }).toMatchObject({ code: 5, err: expect.stringContaining('tapetree sessions list') as string })
    expect(await run(['-c', 'go'])).toMatchObject({ code: 5 })
  })

  test('6 if another process owns the session and does not answer', patiently, async () => {
    const id = await madeSession()
    const { sessions } = placesOf(home)
    const script = `
      const { openFileStore } = await import('@tapetree/session/stores/file')
      const session = await openFileStore({ folder: ${JSON.stringify(sessions)} }).open(${JSON.stringify(id)})
      console.log(session.readOnlyReason ?? 'held')
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['-C', '@tapetree/source', '--input-type=module', '-e', script], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
    })
    try {
      const [held] = (await once(owner.stdout, 'data')) as [Buffer]
      expect(held.toString()).toBe('held\n')
      const { code, err } = await run(['--session', id, 'go'])
      expect(code).toBe(6)
      expect(err).toContain(`tapetree sessions fork ${id}`)
    } finally {
      owner.kill('SIGKILL')
    }
  })

  test('7 if the log is damaged, until the damage is acknowledged', async () => {
    const id = await madeSession()
    const log = join(placesOf(home).sessions, id, 'events.jsonl')
    await appendFile(log, '{"type":"message","id":\n')
    const { code, err } = await run(['--session', id, 'go'])
    expect(code).toBe(7)
    expect(err).toContain(`tapetree log repair ${id}`)
    expect(await runCli(['log', 'repair', id], testIo({ env: home.env, cwd: home.cwd, home: home.home }))).toBe(0)
    home.provider.script(say('On we go.'))
    expect(await run(['--session', id, 'go'])).toMatchObject({ code: 0, out: 'On we go.\n' })
  })

  test.each([
    ['--max-turns', '1', 'limit:turns'],
    ['--max-cost', '0.0005', 'limit:cost'],
  ])('8 if %s is reached', patiently, async (option, value, type) => {
    home.provider.script(calls('ls', { path: '.' }), say('never said'))
    const { code, out } = await run(['--json', option, value, 'go'])
    expect(code).toBe(8)
    expect(JSON.parse(out)).toMatchObject({ outcome: 'failed', error: { type, code: 8 } })
    expect(home.provider.requests).toHaveLength(1)
  })

  test('8 if --timeout has passed, and stops the run', patiently, async () => {
    home.provider.script({ type: 'hang' })
    const { code, out } = await run(['--json', '--timeout', '0.2', 'go'])
    expect(code).toBe(8)
    expect(JSON.parse(out)).toMatchObject({ outcome: 'aborted', error: { type: 'limit:timeout' } })
  })

  test(
    '9 if a permission is required, with the rule that would allow it; with that rule it succeeds',
    patiently,
    async () => {
      const touch = calls('bash', { command: 'touch made.txt' })
      home.provider.script(touch, say('I was not allowed to.'))
      const { code, out, err } = await run(['go'])
      expect({ code, out }).toEqual({ code: 9, out: 'I was not allowed to.\n' })
      const [, rule = ''] = /--allow '([^']+)'/.exec(err) ?? []
      expect(err).toContain('touch made.txt')
      expect(rule).toContain('command touch')
      home.provider.script(touch, say('Done.'))
      expect(await run(['--allow', rule, 'again'])).toMatchObject({ code: 0, out: 'Done.\n' })
    },
  )

  test('0 if the agent only asks a question without an answer, and continues', patiently, async () => {
    home.provider.script(calls('ask_user', { question: 'Which?', options: [] }), say('Then the first.'))
    const { code, out, err } = await run(['go'])
    expect({ code, out }).toEqual({ code: 0, out: 'Then the first.\n' })
    expect(err).toContain('No user is present to answer: Which?')
  })

  test('130 if it is interrupted, and the log keeps everything so far', patiently, async () => {
    home.provider.script({
      type: 'answer',
      content: [
        { type: 'text', chunks: ['Once upon a time '] },
        { type: 'wait', gate: 'never' },
        { type: 'text', chunks: ['the end'] },
      ],
    })
    const interrupt = new AbortController()
    const io = testIo({ env: home.env, cwd: home.cwd, home: home.home, signal: interrupt.signal })
    const end = runCli(['run', '--jsonl', 'go'], io)
    await expect.poll(() => io.out(), { timeout: 15_000 }).toContain('Once upon')
    interrupt.abort()
    expect(await end).toBe(130)
    const err = io.err()
    const [, id = ''] = /tapetree run --session (\S+)/.exec(err) ?? []
    const store = await openStore(placesOf(home))
    await using session = await store.open(id, { readOnly: true })
    expect(session.openRun).toBeNull()
    let log = ''
    for await (const line of session.lines()) log += line.type === 'line' ? line.text : ''
    expect(log).toContain('Once upon')
    await store.close()
  })
})

describe('a session that another process has open', () => {
  test('is prompted there, and the user there is asked', patiently, async () => {
    const id = await madeSession()
    const store = await openStore(placesOf(home))
    await using host = await SessionHost.open({ io: home, store, owner: 'terminal' })
    const { handle } = await host.open(id)
    await host.listen()
    home.provider.script(calls('bash', { command: 'touch made.txt' }), say('From the owner.'))
    handle.subscribe(() => {
      for (const { requestId } of handle.transcript.permissions) {
        handle.answer(requestId, { optionId: 'allow_once' }).catch(() => undefined)
      }
    })
    const { code, out, err } = await ended(start(['--session', id, 'hello']))
    expect({ code, out }).toEqual({ code: 0, out: 'From the owner.\n' })
    expect(err).toContain(`in process ${process.pid}`)
    expect(await ended(start(['--session', id, '--max-turns', '1', 'hello']))).toMatchObject({ code: 2 })
    await handle.close()
  })
})

describe('the process', () => {
  test('ends with 4 within a second of its start, without a key', patiently, async () => {
    await writeFile(join(home.env['TAPETREE_HOME'] ?? '', 'settings.json'), '{}')
    const bareMs = await elapsed(() => once(spawn(process.execPath, ['-e', '0']), 'close'))
    const ms = await elapsed(async () => expect(await ended(start(['go']))).toMatchObject({ code: 4, out: '' }))
    // A machine that runs other tests is slower.
    expect(ms).toBeLessThan(Math.max(1000, 25 * bareMs))
  })

  test('aborts its run at SIGINT, prints the id of the session and ends with 130', patiently, async () => {
    home.provider.script({ type: 'hang' })
    const child = start(['go'])
    const end = ended(child)
    await home.provider.request(1)
    child.kill('SIGINT')
    const { code, err } = await end
    expect(code).toBe(130)
    expect(err).toMatch(/tapetree run --session \S+/)
  })
})
