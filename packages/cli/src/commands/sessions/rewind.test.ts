import type { FakeAnswer } from '@tapetree/agent/testing'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  await writeFile(join(home.cwd, 'a.txt'), 'one\n')
})
afterEach(() => home[Symbol.asyncDispose]())

const say = (text: string): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks: [text] }] })
const bash = (command: string): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'tool_call', id: 'c1', name: 'bash', chunks: [JSON.stringify({ command })] }],
})

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = testIo({ env: home.env, cwd: home.cwd, home: home.home })
  const code = await runCli(args, io)
  return { code, out: io.out(), err: io.err() }
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { out, err } = await run(...args, '--json')
  if (out === '') throw new Error(err)
  return JSON.parse(out) as Record<string, unknown>
}

const textNow = (): Promise<string> => readFile(join(home.cwd, 'a.txt'), 'utf8')

/** Runs a prompt whose command changes files; returns the entry of the prompt. */
async function changed(prompt: string, command: string, ...options: string[]): Promise<string> {
  home.provider.script(bash(command), say(`Did ${prompt}.`))
  await run('run', ...options, prompt)
  const { context } = await json('sessions', 'context', 'last')
  const { messages } = context as { messages: { entry_id: string; message: { role: string; content: unknown } }[] }
  return messages.findLast(({ message }) => message.role === 'user')?.entry_id ?? ''
}

test('two branches are compared with their files, and a session goes back with its files and comes again', async () => {
  const first = await changed('first', 'echo two >> a.txt')
  const second = await changed('second', 'echo new > b.txt', '-c')
  const { leaf_id: leaf } = await json('sessions', 'show', 'last')
  const compared = await json('sessions', 'compare', 'last', first, second)
  expect(compared).toMatchObject({
    common_ancestor: first,
    files: { changed_count: 1, changes: [{ path: 'a.txt', added_lines: 1, removed_lines: 0 }] },
  })
  const { out } = await run('sessions', 'compare', 'last', first, '--diff')
  expect(out).toContain('2 files from left to right, +2 -0')
  expect(out).toMatch(/^M +\+1 -0 {2}a\.txt$/m)
  expect(out).toContain('\n+two\n')

  const preview = await run('sessions', 'rewind', 'last', first, '--dry-run')
  expect(preview.err).toContain('a.txt: would go back\nb.txt (deleted): would go back\n')
  expect(await textNow()).toBe('one\ntwo\n')
  const { err } = await run('sessions', 'rewind', 'last', first)
  expect(err).toContain('The conversation continues before: first')
  expect(await textNow()).toBe('one\n')
  expect(await json('sessions', 'rewind', 'last', '--undo')).toMatchObject({ leaf_id: leaf })
  expect(await textNow()).toBe('one\ntwo\n')
  const nothing = await run('sessions', 'rewind', 'last', '--undo')
  expect([nothing.code, nothing.err]).toEqual([5, expect.stringContaining('nothing to take back')])
})

test('a file that the user changed too stays, unless it is taken', async () => {
  const first = await changed('first', 'echo two >> a.txt')
  await writeFile(join(home.cwd, 'a.txt'), 'mine\n')
  const kept = await json('sessions', 'rewind', 'last', first, '--files')
  expect(kept).toMatchObject({ files: { changes: [{ path: 'a.txt', action: 'conflict' }] } })
  expect(await textNow()).toBe('mine\n')
  await run('sessions', 'rewind', 'last', first, '--files', '--conflicts', 'take')
  expect(await textNow()).toBe('one\n')
})

test('a rewind needs an entry or --undo, and files that were recorded', async () => {
  home.env['TAPETREE_SNAPSHOTS_IS_ENABLED'] = 'false'
  const first = await changed('first', 'echo two >> a.txt')
  expect((await run('sessions', 'rewind', 'last')).code).toBe(2)
  expect((await run('sessions', 'rewind', 'last', first, '--undo')).code).toBe(2)
  expect((await run('sessions', 'rewind', 'last', first, '--talk', '--files')).code).toBe(2)
  const { code, err } = await run('sessions', 'rewind', 'last', first)
  expect([code, err]).toEqual([5, expect.stringContaining('--talk')])
  expect((await run('sessions', 'rewind', 'last', first, '--talk')).code).toBe(0)
  expect(await textNow()).toBe('one\ntwo\n')
})

test('an exported page shows how the files of a branch differ from the current path, without secrets', async () => {
  const token = `ghp_${'a1B2'.repeat(9)}`
  await changed('first', 'echo two >> a.txt')
  const second = await changed('second', `echo '<b>three</b> ${token}' >> a.txt`, '-c')
  await run('sessions', 'rewind', 'last', second)
  await changed('third', 'echo four >> a.txt', '-c')
  await run('sessions', 'export', 'last', '--output', 'out.html')
  const page = await readFile(join(home.cwd, 'out.html'), 'utf8')
  expect(page).toContain('1 file changed from this branch to the current path: +1 −1')
  expect(page).toContain('<summary>a.txt changed +1 −1</summary>')
  expect(page).toMatch(/<del> +3 − &lt;b&gt;.*<\/del>\n<ins> +3 \+ .*four.*<\/ins>/)
  expect(page).not.toContain(token)
  expect(page).not.toContain('<b>three')
})

test('rewinding a variant from the command line changes its copy and never the folder that was copied', async () => {
  home.provider.script(bash('echo two >> a.txt'), say('Did it.'))
  await run('run', '--variants', '1', 'change it')
  const { copies } = await json('variants', 'list')
  const [{ session_id: id, copy } = { session_id: '', copy: '' }] = copies as { session_id: string; copy: string }[]
  const textOfCopy = (): Promise<string> => readFile(join(copy, 'a.txt'), 'utf8')
  await writeFile(join(home.cwd, 'a.txt'), 'one\ntwo\n')
  expect(await textOfCopy()).toBe('one\ntwo\n')
  const { context } = await json('sessions', 'context', id)
  const { messages } = context as { messages: { entry_id: string; message: { role: string } }[] }
  const prompt = messages.find(({ message }) => message.role === 'user')?.entry_id ?? ''
  await run('sessions', 'rewind', id, prompt)
  expect([await textOfCopy(), await textNow()]).toEqual(['one\n', 'one\ntwo\n'])
})
