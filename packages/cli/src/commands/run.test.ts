import type { FakeAnswer, FakeContent } from '@tapetree/agent/testing'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo, type TestIo, type TestIoOptions } from '../testing/test-io.ts'

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome()
})
afterEach(() => home[Symbol.asyncDispose]())

const say = (...chunks: string[]): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'text', chunks }],
  usage: { input: 1000, output: 200 },
})
const call = (name: string, input: object, id = 'c1'): FakeContent => ({
  type: 'tool_call',
  id,
  name,
  chunks: [JSON.stringify(input)],
})
const calls = (...content: FakeContent[]): FakeAnswer => ({
  type: 'answer',
  content,
  usage: { input: 1000, output: 200 },
})

interface Ran {
  code: number
  out: string
  err: string
}

async function run(args: string[], options: TestIoOptions = {}): Promise<Ran> {
  const io: TestIo = testIo({ env: home.env, cwd: home.cwd, home: home.home, ...options })
  const code = await runCli(['run', ...args], io)
  return { code, out: io.out(), err: io.err() }
}

const sent = (index: number): string => JSON.stringify(home.provider.requests[index]?.body)

function sessionIn(err: string): string {
  const [, id = ''] = /Session ([\w-]+)/.exec(err) ?? []
  return id
}

describe('run', () => {
  test('records the files, unless the settings turn it off', async () => {
    const recorded = async (): Promise<boolean> => {
      home.provider.script(calls(call('bash', { command: 'echo b > a.txt' })), say('Done.'))
      const { out } = await run(['change', 'it', '--permission-mode', 'auto', '--jsonl'])
      return out.includes('"type":"snapshot"')
    }
    expect(await recorded()).toBe(true)
    home.env['TAPETREE_SNAPSHOTS_IS_ENABLED'] = 'false'
    expect(await recorded()).toBe(false)
  })

  test('prints only the answer on stdout, and its progress on stderr', async () => {
    home.provider.script(
      calls({ type: 'text', chunks: ['Let me look.'] }, call('ls', { path: '.' })),
      say('There is ', 'nothing.'),
    )
    const { code, out, err } = await run(['What', 'is here?'])
    expect({ code, out }).toEqual({ code: 0, out: 'There is nothing.\n' })
    expect(err).toMatch(/^· Session \S+\n· Let me look\.\n> ls \.\n$/)
    expect(sent(0)).toContain('What is here?')
  })

  test('streams to a terminal without escape sequences of the model', async () => {
    home.provider.script(say('red \u001b[31', 'm\u001b]0;title\u0007 end'))
    const { out } = await run(['hi'], { isTTY: true, stdin: '' })
    // oxlint-disable-next-line no-control-regex
    expect(out).not.toMatch(/[\u001b\u0007]/)
    expect(out).toMatch(/^red .* end\n$/)
  })

  test('adds piped text, files and images to the prompt', async () => {
    await writeFile(join(home.cwd, 'note.txt'), 'buy milk')
    await writeFile(join(home.cwd, 'dot.png'), Buffer.from('\u0089PNG\r\n\u001a\n....', 'latin1'))
    home.provider.script(say('ok'))
    expect(await run(['Read @note.txt and @dot.png'], { stdin: 'from a pipe' })).toMatchObject({ code: 0 })
    for (const words of ['buy milk', 'from a pipe', 'data:image/png;base64']) expect(sent(0)).toContain(words)
  })

  test('prints one object with --json', async () => {
    home.provider.script(calls(call('ls', { path: '.' })), say('Done.'))
    const { code, out, err } = await run(['--json', 'go'])
    expect(code).toBe(0)
    const result = JSON.parse(out) as Record<string, unknown>
    expect(result).toMatchObject({
      session_id: sessionIn(err),
      outcome: 'completed',
      text: 'Done.',
      usage: { input_tokens: 2000, output_tokens: 400 },
      turns: 2,
      error: null,
    })
    expect(result['cost']).toBeCloseTo(0.004)
  })

  test('prints log lines, streamed text and the result with --jsonl', async () => {
    home.provider.script({
      type: 'answer',
      content: [
        { type: 'text', chunks: ['One '] },
        { type: 'wait', gate: 'more' },
        { type: 'text', chunks: ['two.'] },
      ],
    })
    const io = testIo({ env: home.env, cwd: home.cwd, home: home.home })
    const ended = runCli(['run', '--jsonl', 'go'], io)
    await expect.poll(() => io.out(), { timeout: 15_000 }).toContain('"text_delta"')
    home.provider.release('more')
    expect(await ended).toBe(0)
    const lines = io
      .out()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const types = lines.map(({ type }) => type)
    expect(types[0]).toBe('session')
    expect(types.at(-1)).toBe('result')
    expect(types).toEqual(expect.arrayContaining(['run_start', 'text_delta', 'message', 'run_end']))
    const seqs = lines.flatMap(({ seq }) => (typeof seq === 'number' ? [seq] : []))
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
  })

  test('uses the given system prompt, tools and text', async () => {
    home.provider.script(say('ok'))
    await run([
      '--system-prompt',
      'You are a poet.',
      '--append-system-prompt',
      'Rhyme.',
      '--tools',
      'read,ls',
      '-m',
      'model-1',
      'go',
    ])
    const tools = home.provider.requests[0]?.body['tools'] as { function: { name: string } }[] | undefined
    expect(tools?.map((tool) => tool.function.name).toSorted()).toEqual(['ls', 'read'])
    expect(sent(0)).toContain('You are a poet.')
    expect(sent(0)).toContain('Rhyme.')
  })

  test('continues a session by id or the newest of the folder, with another thinking level', async () => {
    home.provider.script(say('one'), say('two'), say('three'))
    const first = await run(['first words'])
    const id = sessionIn(first.err)
    expect(sessionIn((await run(['-c', 'second'])).err)).toBe(id)
    expect(sessionIn((await run(['--session', id.slice(0, 20), '--thinking', 'high', 'third'])).err)).toBe(id)
    expect(sent(2)).toContain('first words')
  })
})

describe('if', () => {
  test('a project is untrusted, its settings are ignored, with one notice', async () => {
    await mkdir(join(home.cwd, '.git'))
    await mkdir(join(home.cwd, '.tapetree'))
    await writeFile(join(home.cwd, '.tapetree/settings.json'), '{"systemPrompt":{"append":"Of the project."}}')
    home.provider.script(say('ok'))
    const { code, err } = await run(['go'])
    expect(code).toBe(0)
    expect(err.match(/you have not trusted/g)).toHaveLength(1)
    expect(sent(0)).not.toContain('Of the project.')
  })

  test('the reader of stdout has gone, the run is stopped without an error message', async () => {
    home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['One'] }], ending: { type: 'hang' } })
    const io = testIo({ env: home.env, cwd: home.cwd, home: home.home })
    const stdout = {
      write: (_: unknown, done?: (error?: Error | null) => void) => {
        done?.(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
        return false
      },
    }
    expect(await runCli(['run', '--jsonl', 'go'], { ...io, stdout })).toBe(130)
    expect(io.err()).not.toContain('EPIPE')
  })

  test('the model answers in a continued session, the text is streamed once', async () => {
    home.provider.script(say('First.'), say('Sec', 'ond.'))
    await run(['one'])
    expect((await run(['-c', 'two'], { isTTY: true, stdin: '' })).out).toBe('Second.\n')
  })
})

describe('an output schema', () => {
  const schema = '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}'

  test('is requested again with the fault, and stdout is the JSON', async () => {
    home.provider.script(say('Sure: yes'), say('```json\n{"ok": true}\n```'))
    expect(await run(['--output-schema', schema, 'Well?'])).toMatchObject({ code: 0, out: '{"ok":true}\n' })
    expect(sent(0)).toContain('output_schema')
    expect(sent(1)).toContain('does not fit')
  })

  test('that is not met ends with 1', async () => {
    home.provider.script(say('no'), say('{"ok":1}'), say('no'), say('no'))
    const { code, out, err } = await run(['--json', '--output-schema', schema, 'Well?'])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({ text: '{"ok":1}', error: { type: 'output-invalid' } })
    expect(err).toContain('"output-invalid"')
    expect(await run(['--output-schema', schema, 'Well?'])).toMatchObject({ code: 1, out: '' })
  })
})

describe('lines of JSON on stdin', () => {
  const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('')

  test('are prompts, answered one after the other', async () => {
    home.provider.script(say('one'), say('two'))
    const stdin = lines({ type: 'prompt', text: 'a' }, { type: 'follow_up', text: 'b' })
    expect(await run(['--input', 'jsonl'], { stdin })).toMatchObject({ code: 0, out: 'one\ntwo\n' })
  })

  test('answer a permission', async () => {
    home.provider.script(calls(call('bash', { command: 'touch made' })), say('Made.'))
    const stdin = new PassThrough()
    const io = { ...testIo({ env: home.env, cwd: home.cwd, home: home.home }), stdin }
    const ended = runCli(['run', '--input', 'jsonl', 'go'], io)
    await expect.poll(() => io.err(), { timeout: 15_000 }).toContain('Waiting for an answer')
    const [, requestId = ''] = /for an answer \((\S+)\)/.exec(io.err()) ?? []
    stdin.end(lines({ type: 'answer', request_id: requestId, option_id: 'allow_once' }))
    expect(await ended).toBe(0)
    expect(io.out()).toBe('Made.\n')
  })

  test('steer a run and cancel it', async () => {
    home.provider.script(calls(call('bash', { command: 'sleep 60' })))
    const stdin = new PassThrough()
    const io = { ...testIo({ env: home.env, cwd: home.cwd, home: home.home }), stdin }
    const ended = runCli(['run', '--input', 'jsonl', '--jsonl', '--permission-mode', 'auto', 'go'], io)
    await expect.poll(() => io.out(), { timeout: 15_000 }).toContain('"tool_start"')
    stdin.write(lines({ type: 'steer', text: 'Look here' }))
    await expect.poll(() => io.out(), { timeout: 15_000 }).toContain('Look here')
    stdin.end(lines({ type: 'cancel' }))
    expect(await ended).toBe(1)
    const results = io
      .out()
      .split('\n')
      .filter((line) => line.startsWith('{"type":"result"'))
    expect(results).toHaveLength(1)
    expect(JSON.parse(results[0] ?? '')).toMatchObject({ outcome: 'aborted', error: { type: 'run-aborted' } })
  })

  test('leave a message queued after a failed run, and end', async () => {
    home.provider.script({ type: 'failure', error: 'invalid-request' })
    const stdin = lines({ type: 'prompt', text: 'a' }, { type: 'follow_up', text: 'b' })
    expect(await run(['--input', 'jsonl'], { stdin })).toMatchObject({ code: 1 })
  })

  test('that are malformed are reported, and the others are executed', async () => {
    home.provider.script(say('one'))
    const stdin = `{"type":"promt"}\n${lines({ type: 'prompt', text: 'a' }, { type: 'answer', request_id: 'x' })}`
    const { code, out, err } = await run(['--input', 'jsonl'], { stdin })
    expect({ code, out }).toEqual({ code: 2, out: 'one\n' })
    expect(err).toContain('Line 1 of stdin')
    expect(err).toContain('Line 3 of stdin')
  })
})
