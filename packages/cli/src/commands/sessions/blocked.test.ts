import type { FakeAnswer } from '@tapetree/agent/testing'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { openStore } from '../../host/open-store.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'

let home: FakeHome
beforeEach(async () => {
  home = await fakeHome({ settings: { permissions: { mode: 'sandboxed' } } })
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

interface Blocked {
  what: string
  outcome?: string
}

/** As the log of the only session has them. */
async function blockedRecords(): Promise<Blocked[]> {
  await using store = await openStore(placesOf(home))
  const { sessions } = await store.list({})
  await using session = await store.open(sessions[0]?.id ?? '', { readOnly: true })
  const records: Blocked[] = []
  for await (const line of session.lines()) {
    const { blocked } = (line.type === 'line' ? JSON.parse(line.text) : {}) as { blocked?: Blocked }
    if (blocked) records.push(blocked)
  }
  return records
}

interface Listed {
  writes: { id: string; path: string; call_id: string }[]
}

test('files that the sandbox took back are shown, applied and discarded', { timeout: 90_000 }, async () => {
  // The gate does not see what a script does.
  await writeFile(join(home.cwd, 'make.sh'), 'mkdir .vscode .claude; echo "{ 1 }" > .vscode/tasks.json')
  home.provider.script(bash('bash make.sh'), say('Done.'))
  await run('run', 'go')
  expect(existsSync(join(home.cwd, '.vscode'))).toBe(false)

  const { out } = await run('sessions', 'blocked', 'last')
  expect(out).toMatch(/^job-\w+\.\d {2}\.vscode\n\+\+\+ \.vscode\/tasks\.json\n\+\{ 1 \}$/m)
  const { writes } = JSON.parse((await run('sessions', 'blocked', 'last', '--json')).out) as Listed
  const idOf = (path: string): string => writes.find((write) => write.path === path)?.id ?? ''
  expect(writes.map(({ call_id: callId }) => callId)).toEqual(['c1', 'c1'])

  expect((await run('sessions', 'blocked', 'last', '--apply', idOf('.vscode'))).out).toContain('Applied job-')
  expect(await readFile(join(home.cwd, '.vscode/tasks.json'), 'utf8')).toBe('{ 1 }\n')
  await run('sessions', 'blocked', 'last', '--discard', idOf('.claude'))
  expect((await run('sessions', 'blocked', 'last')).out).toBe('Nothing was blocked that could be applied.\n')
  const again = await run('sessions', 'blocked', 'last', '--apply', idOf('.vscode'))
  expect([again.code, again.err]).toEqual([5, expect.stringContaining('There is no blocked write')])

  const outcomes = (await blockedRecords()).map(({ what, outcome = 'kept' }) => `${what} ${outcome}`)
  expect(outcomes.toSorted()).toEqual(['.claude discarded', '.claude kept', '.vscode applied', '.vscode kept'])
})
