import type { FakeAnswer } from '@tapetree/agent/testing'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { openStore } from '../host/open-store.ts'
import type { Output } from '../command-line/io.ts'
import { placesOf } from '../host/places.ts'
import { bundle } from '../testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo } from '../testing/test-io.ts'

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
})
afterEach(() => home[Symbol.asyncDispose]())

const say = (words: string): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'text', chunks: [words] }],
  usage: { input: 1000, output: 0 },
})
/** The next word reveals that the reader has gone. */
const speakLater: FakeAnswer = {
  type: 'answer',
  content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: ['{"command":"sleep 1; echo word; sleep 60"}'] }],
}

/** A reader that takes nothing until told to. */
class SlowReader implements Output {
  text = ''
  #waiting: (() => void)[] | undefined = []

  write(text: string | Uint8Array, done?: () => void): boolean {
    this.text += String(text)
    if (this.#waiting) this.#waiting.push(() => done?.())
    else queueMicrotask(() => done?.())
    return true
  }

  read(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const done of waiting) done()
  }
}

describe('a reader slower than the answers', () => {
  const stdin = ['a', 'b', 'c'].map((each) => `${JSON.stringify({ type: 'prompt', text: each })}\n`).join('')

  async function runSlowly(...args: string[]): Promise<string> {
    home.provider.script(say('one'), say('two'), say('three'))
    const stdout = new SlowReader()
    const io = { ...testIo({ env: home.env, cwd: home.cwd, home: home.home, stdin }), stdout }
    const ended = runCli(['run', '--input', 'jsonl', ...args], io)
    await home.provider.request(3)
    stdout.read()
    expect(await ended).toBe(0)
    return stdout.text
  }

  test('gets each answer with its own prompt', async () => {
    const lines = (await runSlowly('--jsonl')).split('\n').filter((line) => line.startsWith('{"type":"result"'))
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { text: 'one', turns: 1, usage: { input_tokens: 1000 } },
      { text: 'two', turns: 1, usage: { input_tokens: 1000 } },
      { text: 'three', turns: 1, usage: { input_tokens: 1000 } },
    ])
  })

  test('gets all of them as text', async () => {
    expect(await runSlowly()).toBe('one\ntwo\nthree\n')
  })
})

describe('if the output ends', () => {
  function start(args: string[], stdout: 'pipe' | number = 'pipe'): ChildProcess {
    const { cwd, env } = home
    return spawn(process.execPath, [bundle, 'run', ...args], { cwd, env, stdio: ['ignore', stdout, 'pipe'] })
  }

  async function ended(child: ChildProcess): Promise<{ code: number | null; err: string }> {
    const [[code], err] = await Promise.all([
      once(child, 'close') as Promise<[number | null]>,
      child.stderr ? text(child.stderr) : '',
    ])
    return { code, err }
  }

  test('during a run, the run is stopped cleanly and the exit code is not 0', async () => {
    home.provider.script(speakLater)
    const child = start(['--jsonl', 'go'])
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      out += chunk.toString()
      if (out.includes('"tool_start"')) child.stdout?.destroy()
    })
    const { code, err } = await ended(child)
    expect({ code, err: err.includes('did not expect') }).toEqual({ code: 130, err: false })
    const { id } = JSON.parse(out.slice(0, out.indexOf('\n'))) as { id: string }
    const store = await openStore(placesOf(home))
    await using session = await store.open(id, { readOnly: true })
    expect(session.openRun).toBeNull()
    await store.close()
  })

  test('after the answer is known, the command succeeds', async () => {
    home.provider.script(say('x'.repeat(200_000)))
    const child = start(['go'])
    child.stdout?.once('data', () => child.stdout?.destroy())
    expect(await ended(child)).toMatchObject({ code: 0 })
  })

  test('because the disk is full, it reports that', async () => {
    await using full = await open('/dev/full', 'w')
    home.provider.script(say('lost'))
    const { code, err } = await ended(start(['go'], full.fd))
    expect(code).toBe(3)
    expect(err).toContain('The output cannot be written.')
    expect(err).toContain('disk is full')
    const version = spawn(process.execPath, [bundle, '--version'], { stdio: ['ignore', full.fd, 'pipe'] })
    expect(await ended(version)).toEqual({ code: 3, err: expect.stringMatching(/^tapetree: .*\n$/) as string })
  })
})
