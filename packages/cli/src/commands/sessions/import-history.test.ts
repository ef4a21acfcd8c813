import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { said, user } from '@tapetree/session/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

const key = `sk-ant-api03-${'Ab3'.repeat(20)}`
const time = '2026-11-18T20:00:00.000Z'
const file = '.pi/agent/sessions/--work--/one_s1.jsonl'

const header = (id = 's1'): object => ({ type: 'session', version: 3, id, timestamp: time, cwd: home.cwd })

function message(id: string, parentId: string | null, said: object): object {
  return { type: 'message', id, parentId, timestamp: time, message: said }
}

const asked = message('a', null, { role: 'user', content: `How? My key is ${key}` })
const called = message('b', 'a', {
  role: 'assistant',
  provider: 'anthropic',
  model: 'claude',
  content: [{ type: 'toolCall', id: 'c1', name: 'bash', arguments: { command: 'ls' } }],
  usage: { input: 10, output: 2, cacheRead: 5, cost: { total: 0.5 } },
})
const answered = message('c', 'b', { role: 'toolResult', toolCallId: 'c1', content: [{ type: 'text', text: 'a.md' }] })

async function write(path: string, lines: readonly (object | string)[]): Promise<void> {
  await mkdir(dirname(join(home.root, path)), { recursive: true })
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  await writeFile(join(home.root, path), text.join(''))
}

interface Result {
  sessions: { id: string; outcome: string; added: number; closed: number; source_id: string }[]
}

async function importAll(...options: string[]): Promise<Result['sessions']> {
  return ((await home.json('import', '--all', ...options)) as unknown as Result).sessions
}

test('without --all and without a terminal, what there is is only listed', async () => {
  await write(file, [header(), asked])
  const { code, out, err } = await home.run(['import'])
  expect([code, err]).toEqual([0, 'Nothing was imported. To import them: tapetree import --all\n'])
  expect(out).toContain('pi')
  expect(out).toContain(home.cwd)
  expect((await home.store.list()).sessions).toEqual([])
})

test('a session has its folder, times, costs and path, no secrets, and closed calls', async () => {
  await write(file, [header(), asked, called])
  const [imported] = await importAll()
  expect(imported).toMatchObject({ outcome: 'imported', source_id: 's1', closed: 1 })
  await using session = await home.store.open(imported?.id ?? '')
  expect(session.info).toMatchObject({ cwd: home.cwd, created: time, modified: time, cost: 0.5 })
  expect(session.totals.tokens).toBe(17)
  const log = await readFile(home.logOf(session.id), 'utf8')
  expect(log).not.toContain(key)
  expect(log).toContain('No result: pi stopped before this call had ended')
})

test('importing twice is importing once, and a session that has grown gets only what is new', async () => {
  await write(file, [header(), asked, called])
  const [first] = await importAll()
  expect(await importAll()).toMatchObject([{ id: first?.id, outcome: 'unchanged', added: 0 }])
  await write(file, [header(), asked, called, answered])
  expect(await importAll()).toMatchObject([{ id: first?.id, outcome: 'updated', added: 1, closed: 0 }])
  await using session = await home.store.open(first?.id ?? '')
  const { messages } = await session.getContext()
  expect(messages.map(({ message: { role } }) => role)).toEqual(['user', 'assistant', 'tool'])
  expect(JSON.stringify(messages)).toContain('a.md')
  expect(JSON.stringify(messages)).not.toContain('No result')
})

test('who went on here stays on that branch', async () => {
  await write(file, [header(), asked])
  const [first] = await importAll()
  const id = first?.id ?? ''
  await using session = await home.store.open(id)
  await user(session, 'I went on here.')
  await session.close()
  await write(file, [header(), asked, called, answered])
  expect(await importAll()).toMatchObject([{ outcome: 'updated', added: 2 }])
  await using later = await home.store.open(id)
  expect((await said(later)).at(-1)).toBe('user: I went on here.')
})

test('who went back here stays there, until the other program has something new', async () => {
  const question = message('b', 'a', { role: 'user', content: 'And then?' })
  await write(file, [header(), asked, question])
  const [first] = await importAll()
  const id = first?.id ?? ''
  const session = await home.store.open(id)
  const back = (await session.getTree())[0]?.children[0]?.entry.id ?? null
  await session.branch(back, { rewind: 'undo' })
  const { seq } = session.head
  await session.close()
  expect(await importAll()).toMatchObject([{ outcome: 'unchanged', added: 0 }])
  await using later = await home.store.open(id, { readOnly: true })
  expect([later.leafId, later.head.seq]).toEqual([back, seq])
})

test('sessions of subagents of Claude Code and Gemini CLI belong to the session that started them', async () => {
  const line = { type: 'user', uuid: 'a', parentUuid: null, timestamp: time, message: { role: 'user', content: 'Go.' } }
  const own = '11111111-1111-4111-8111-111111111111'
  await write(`.claude/projects/-work/${own}.jsonl`, [{ ...line, sessionId: own }])
  await write(`.claude/projects/-work/${own}/subagents/agent-x.jsonl`, [{ ...line, sessionId: own, isSidechain: true }])
  const gemini = { projectHash: 'h', startTime: time }
  const said = { id: 'a', timestamp: time, type: 'user', content: 'Go.' }
  await write('.gemini/tmp/work/chats/session-1.jsonl', [{ ...gemini, sessionId: 'g1', kind: 'main' }, said])
  await write('.gemini/tmp/work/chats/g1/x.jsonl', [{ ...gemini, sessionId: 'x', kind: 'subagent' }, said])
  const imported = await importAll()
  const idOf = (sourceId: string): string => imported.find((each) => each.source_id === sourceId)?.id ?? ''
  for (const [parent, child] of [
    [own, `${own} x`],
    ['g1', 'g1 x'],
  ] as const) {
    await using session = await home.store.open(idOf(child), { readOnly: true })
    expect(session.header).toMatchObject({ parentSession: idOf(parent), subagent: true })
  }
})

test('sessions of Claude Code are also found in the other folder that it has used', async () => {
  const own = '11111111-1111-4111-8111-111111111111'
  const line = { type: 'user', uuid: 'a', parentUuid: null, sessionId: own, timestamp: time }
  await write(`.config/claude/projects/-work/${own}.jsonl`, [{ ...line, message: { role: 'user', content: 'Go.' } }])
  expect(await importAll()).toMatchObject([{ outcome: 'imported', source_id: own }])
})

test('lines that cannot be read are counted and are no failure', async () => {
  await write(file, [header(), '{"type":', '[1]', '', asked, '{"a":'.repeat(60) + '1' + '}'.repeat(60)])
  const { code, out } = await home.run(['import', '--all'])
  expect(code).toBe(0)
  expect(out).toContain('dropped 2: it is not the JSON of an object')
  expect(out).toContain('dropped 1: its values are nested too deeply')
})

test('a dry run writes nothing and says what an import would do', async () => {
  await write(file, [header(), asked, called])
  expect(await importAll('--dry-run')).toMatchObject([{ outcome: 'imported', added: 2, closed: 1 }])
  expect((await home.store.list()).sessions).toEqual([])
})

test('sessions in the archive are left alone', async () => {
  await write(file, [header(), asked])
  const [first] = await importAll()
  await home.store.archive(first?.id ?? '')
  await write(file, [header(), asked, called])
  expect(await importAll()).toMatchObject([{ outcome: 'put-away', added: 0 }])
})

test('a program, a folder or a path selects sessions', async () => {
  await write(file, [header(), asked])
  await write('.pi/agent/sessions/--other--/two_s2.jsonl', [{ ...header('s2'), cwd: '/elsewhere' }, asked])
  expect(await importAll('--dry-run', '--from', 'codex').catch(() => [])).toEqual([])
  expect(await importAll('--dry-run', '--project', home.cwd)).toMatchObject([{ source_id: 's1' }])
  expect(await importAll('--dry-run', join(home.root, '.pi/agent/sessions/--other--'))).toMatchObject([
    { source_id: 's2' },
  ])
  expect((await home.run(['import', join(home.root, 'nowhere')])).code).toBe(5)
  await writeFile(join(home.root, 'other.jsonl'), '{"a":1}\n')
  expect((await home.run(['import', join(home.root, 'other.jsonl')])).code).toBe(2)
})
