import type { FakeRequest, FakeStep } from '@tapetree/agent/testing'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCli } from '../cli.ts'
import { placesOf } from '../host/places.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { testIo, type TestIoOptions } from '../testing/test-io.ts'

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  const file = join(home.env['TAPETREE_HOME'] ?? '', 'settings.json')
  const settings = JSON.parse(await readFile(file, 'utf8')) as { providers: { fake: { models: { id: string }[] } } }
  const [model] = settings.providers.fake.models
  settings.providers.fake.models = ['model-1', 'model-2', 'model-3'].map((id) => ({ ...model, id }))
  await writeFile(file, JSON.stringify(settings))
})
afterEach(() => home[Symbol.asyncDispose]())

/** What the agent of each model runs in its folder, then it is done. */
function script(commands: Record<string, string>): void {
  home.provider.script(({ body }: FakeRequest): FakeStep => {
    const usage = { input: 1000, output: 200 }
    const messages = body['messages'] as { role: string }[]
    if (messages.at(-1)?.role === 'tool')
      return { type: 'answer', content: [{ type: 'text', chunks: ['Done.'] }], usage }
    const command = commands[String(body['model'])] ?? 'true'
    const call = { type: 'tool_call' as const, id: 'c1', name: 'bash', chunks: [JSON.stringify({ command })] }
    return { type: 'answer', content: [call], usage }
  })
}

const all = '--model fake/model-1,fake/model-2,fake/model-3'.split(' ')

interface Ran {
  code: number
  out: string
  err: string
}

async function tapetree(args: string[], options: TestIoOptions = {}): Promise<Ran> {
  const io = testIo({ env: home.env, cwd: home.cwd, home: home.home, ...options })
  const code = await runCli(args, io)
  return { code, out: io.out(), err: io.err() }
}

interface Result {
  variants: {
    session_id: string
    outcome: string
    check: { exit_code: number } | null
    diff: { files: number; added: number; removed: number }
    cost: number
    folder: string | null
  }[]
  chosen: { session_id: string; merged: string[] } | null
}

const resultOf = ({ out }: Ran): Result => JSON.parse(out) as Result
const copies = (): string[] => {
  const { copies: folder } = placesOf(home)
  return existsSync(folder) ? readdirSync(folder) : []
}
const main = (name: string): Promise<string> => readFile(join(home.cwd, name), 'utf8')

describe('run --variants', () => {
  test('runs the prompt in copies, checks each, and merges the best one into the folder', async () => {
    execFileSync('git', ['init', '--quiet', home.cwd])
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({
      'model-1': 'echo wrong > a.txt',
      'model-2': 'echo right > a.txt; echo more > b.txt',
      'model-3': 'echo right > a.txt; pwd > where',
    })
    const args = [
      'run',
      '--json',
      '--variants',
      '3',
      ...all,
      '--check',
      'grep -q right a.txt',
      '--choose',
      'best',
      'go',
    ]
    const ran = await tapetree(args)
    expect(ran).toMatchObject({ code: 0 })
    const { variants, chosen } = resultOf(ran)
    expect(variants.map(({ outcome, check, diff }) => [outcome, check?.exit_code, diff.files])).toEqual([
      ['completed', 1, 1],
      ['completed', 0, 2],
      ['completed', 0, 2],
    ])
    expect(variants[0]?.diff).toEqual({ files: 1, added: 1, removed: 1 })
    expect(variants.map(({ cost }) => cost)).toEqual([0.004, 0.004, 0.004])
    expect(chosen?.session_id).toBe(variants[1]?.session_id)
    expect([await main('a.txt'), await main('b.txt')]).toEqual(['right\n', 'more\n'])
    expect(copies()).toEqual([])
    // The chosen conversation goes on in the folder itself.
    script({ 'model-2': 'pwd > where' })
    expect(await tapetree(['run', '--session', chosen?.session_id ?? '', 'where?'])).toMatchObject({ code: 0 })
    expect(await main('where')).toBe(`${home.cwd}\n`)
    const log = await tapetree(['log', 'verify', chosen?.session_id ?? ''])
    expect(log.code).toBe(0)
  })

  test('a key in the command of a check is not kept', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': 'echo one > a.txt' })
    const key = ['ghp', 'Zk4Rw8Tb2Nq6Ls1Vd9Xc3Hf7Gj5Mp0Ay2Ue'].join('_')
    const check = `test ${key} = ${key}`
    const models = ['--model', 'fake/model-1', '--variants', '2']
    const ran = await tapetree(['run', '--json', ...models, '--check', check, '--choose', 'none', 'go'])
    expect(ran.code).toBe(0)
    const [variant] = resultOf(ran).variants
    const { sessions } = placesOf(home)
    const log = await readFile(join(sessions, variant?.session_id ?? '', 'events.jsonl'), 'utf8')
    expect(log).toContain('"type":"check"')
    expect(log).not.toContain(key)
  })

  test('prints a table and the steps, and keeps the copies until one is chosen', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': 'echo one > a.txt', 'model-2': 'exit 0' })
    const ran = await tapetree([
      'run',
      '--variants',
      '2',
      '--model',
      'fake/model-1,fake/model-2',
      '--check',
      'test -s a.txt',
      'go',
    ])
    expect(ran.code).toBe(0)
    expect(ran.err).toContain('· Variant 1 (fake/model-1): copying\n')
    expect(ran.err).toContain('· Variant 1 (fake/model-1): completed, check passed\n')
    expect(ran.out).toMatch(/^VARIANT {2}MODEL .*\n +1 {2}fake\/model-1 {2}completed {2}passed +1 {2}\+1 -1 +< \$0\.01/)
    expect(await main('a.txt')).toBe('start\n')
    const { out } = await tapetree(['variants', 'list', '--json'])
    const [first] = (JSON.parse(out) as { copies: { session_id: string; state: string }[] }).copies
    expect(first).toMatchObject({ state: 'ended', check: { exit_code: 0 }, folder: home.cwd })
    const id = first?.session_id ?? ''
    expect((await tapetree(['variants', 'show', id])).out).toContain('\n-start\n+one\n')
    await writeFile(join(home.cwd, 'mine.txt'), 'mine\n')
    expect(await tapetree(['variants', 'choose', id])).toMatchObject({
      code: 0,
      out: expect.stringContaining(id) as string,
    })
    expect([await main('a.txt'), await main('mine.txt')]).toEqual(['one\n', 'mine\n'])
    expect(copies()).toEqual([])
  })

  test('asks on a terminal, also about files that both have changed', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': 'echo one > a.txt', 'model-2': 'echo two > a.txt' })
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const io = { ...testIo({ env: home.env, cwd: home.cwd, home: home.home, isTTY: true, columns: 100 }), stdin }
    const ended = runCli(['run', '--variants', '2', '--model', 'fake/model-1,fake/model-2', 'go'], io)
    const answer = async (question: string, typed: string): Promise<void> => {
      await expect.poll(() => io.err(), { timeout: 20_000 }).toContain(question)
      stdin.write(`${typed}\n`)
    }
    await answer('Choose a variant (1, 2)', '7')
    await answer('There is no variant 7', 'd2')
    await expect.poll(() => io.out()).toContain('\n+two\n')
    await writeFile(join(home.cwd, 'a.txt'), 'mine\n')
    stdin.write('2\n')
    await answer('a.txt: keep yours (k)', 't')
    expect(await ended).toBe(0)
    expect(await main('a.txt')).toBe('two\n')
    expect(copies()).toEqual([])
  })

  test('without a terminal, a conflict changes nothing and says how to decide', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': `echo mine > ${join(home.cwd, 'a.txt')}; echo one > a.txt` })
    const ran = await tapetree(['run', '--variants', '1', '--choose', '1', 'go'])
    expect(ran).toMatchObject({
      code: 1,
      err: expect.stringContaining('You and the variant have both changed a.txt') as string,
    })
    expect(await main('a.txt')).toBe('mine\n')
    const [, id = ''] = /variants choose (\S+) --conflicts take/.exec(ran.err) ?? []
    expect((await tapetree(['variants', 'choose', id, '--conflicts', 'take'])).code).toBe(0)
    expect(await main('a.txt')).toBe('one\n')
  })

  test('stops all variants at the limit of their total cost', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': 'echo one > a.txt', 'model-2': 'echo two > a.txt', 'model-3': 'echo three > a.txt' })
    const args = ['run', '--json', '--variants', '3', '--parallel', '1', '--max-cost', '0.003', ...all, 'go']
    const ran = await tapetree(args)
    expect(ran).toMatchObject({ code: 8, err: expect.stringContaining('--max-cost') as string })
    expect(resultOf(ran).variants.map(({ outcome }) => outcome)).toEqual(['stopped', 'not-run', 'not-run'])
    expect(home.provider.requests.length).toBeLessThan(3)
  })

  test('an interrupt stops all variants, and keeps only copies with changes', async () => {
    await writeFile(join(home.cwd, 'a.txt'), 'start\n')
    script({ 'model-1': 'echo one > a.txt; touch changed; sleep 60', 'model-2': 'sleep 60' })
    const interrupt = new AbortController()
    const io = testIo({ env: home.env, cwd: home.cwd, home: home.home, signal: interrupt.signal })
    const ended = runCli(['run', '--variants', '2', '--model', 'fake/model-1,fake/model-2', 'go'], io)
    const { copies: folder } = placesOf(home)
    const isChanged = (): boolean => copies().some((name) => existsSync(join(folder, name, 'changed')))
    await expect.poll(() => isChanged() && home.provider.requests.length === 2, { timeout: 20_000 }).toBe(true)
    interrupt.abort()
    expect(await ended).toBe(130)
    expect(io.err()).toContain('1 copy with changes is kept.')
    expect(copies()).toHaveLength(1)
    // The next run says so, and `variants remove` cleans up.
    script({})
    expect((await tapetree(['run', '--variants', '1', '--choose', 'none', 'go'])).err).toContain(
      '1 working copy of earlier variants is left',
    )
    expect((await tapetree(['variants', 'remove', '--all'])).err).toBe('Removed 1 working copy.\n')
    expect(copies()).toEqual([])
  })

  test('forks a session, and the conversation so far is known in each', async () => {
    script({})
    const first = await tapetree(['run', '--json', 'remember this'])
    const { session_id: id } = JSON.parse(first.out) as { session_id: string }
    const ran = await tapetree(['run', '--json', '--session', id, '--variants', '2', '--choose', 'none', 'and now'])
    expect(ran.code).toBe(0)
    for (const { body } of home.provider.requests.slice(-2)) expect(JSON.stringify(body)).toContain('remember this')
    expect(new Set(resultOf(ran).variants.map(({ session_id: each }) => each)).size).toBe(2)
    expect(copies()).toEqual([])
  })

  test('a command for new copies runs first, and a variant without it is not run', async () => {
    await writeFile(join(home.cwd, '.gitignore'), 'deps\n')
    script({})
    const good = await tapetree([
      'run',
      '--variants',
      '1',
      '--setup',
      'touch deps',
      '--check',
      'test -f deps',
      '--choose',
      'none',
      'go',
    ])
    expect(good.out).toContain('passed')
    const bad = await tapetree(['run', '--variants', '1', '--setup', 'echo no room; exit 3', 'go'])
    expect(bad).toMatchObject({
      code: 1,
      err: expect.stringContaining('--setup failed with exit code 3. no room') as string,
    })
  })

  test('refuses options that do not fit', async () => {
    const refused = async (...args: string[]): Promise<string> => {
      const { code, err } = await tapetree(['run', ...args, 'go'])
      expect(code).toBe(2)
      return err
    }
    expect(await refused('--check', 'true')).toContain('--check requires --variants')
    expect(await refused('--variants', '2', '--jsonl')).toContain('--jsonl cannot be used with --variants')
    expect(await refused('--variants', '99')).toContain('at most 16')
    expect(await refused('--variants', '1', '--model', 'a,b')).toContain('only 1 variants')
    expect(await refused('--variants', '2', '--choose', '3')).toContain('from 1 to 2')
  })
})
