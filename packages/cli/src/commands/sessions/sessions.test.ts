import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { placesOf } from '../../host/places.ts'
import { SessionHome } from '../../testing/session-home.ts'

let home: SessionHome

beforeEach(async () => {
  home = await SessionHome.make()
})

afterEach(() => home[Symbol.asyncDispose]())

test('a list has the sessions of this folder, newest first, and a hostile name stays a name', async () => {
  const first = await home.session((session) => user(session, 'the \u001b[2Jfirst words\nof it'))
  const second = await home.session(async (session) => {
    await user(session, 'hello')
    await session.appendSessionInfo('a name')
  })
  const other = await home.session((session) => user(session, 'elsewhere'), { cwd: '/elsewhere' })
  const { out, code } = await home.run(['sessions', 'list'])
  expect(code).toBe(0)
  expect(out.split('\n').map((line) => line.split(/ {2,}/).at(-1))).toEqual([
    'NAME',
    'a name',
    'the ␛[2Jfirst words of it',
    '',
  ])
  const ids = async (...args: string[]): Promise<unknown> =>
    ((await home.json('sessions', 'list', ...args))['sessions'] as { id: string }[]).map(({ id }) => id)
  expect(await ids()).toEqual([second, first])
  expect(await ids('--all')).toEqual([other, second, first])
  expect(await ids('--folder', '/elsewhere')).toEqual([other])
  expect(await ids('--text', 'NAME')).toEqual([second])
  expect(await ids('--status', 'running')).toEqual([])
  expect(await ids('--limit', '1')).toEqual([second])
  expect((await home.run(['sessions', 'list', '--limit', '0'])).code).toBe(2)
})

test('a search shows the author and the entry of each match', async () => {
  const id = await home.session(async (session) => {
    await user(session, 'where is the flaky test')
    await assistant(session, 'the flaky one is here')
  })
  const { out } = await home.run(['sessions', 'search', 'flaky', 'test'])
  expect(out.split('\n')[1]).toMatch(/^\w{8} +3 +now +user +where is the flaky test$/)
  expect(await home.json('sessions', 'search', 'flaky')).toMatchObject({
    hits: [{ session_id: id }, { session_id: id }],
  })
  expect((await home.run(['sessions', 'search', 'nowhere'])).err).toContain(
    'No message in any session contains "nowhere"',
  )
  expect((await home.run(['sessions', 'search', 'flaky', '--archive'])).err).toContain(
    'No message in any archived session contains "flaky"',
  )
  await home.run(['sessions', 'archive', id])
  expect(await home.json('sessions', 'search', 'flaky', '--archive')).toMatchObject({
    hits: [{ session_id: id }, { session_id: id }],
  })
  expect(await home.json('sessions', 'search', 'flaky')).toEqual({ hits: [] })
  expect((await home.run(['sessions', 'search', 'flaky', '--archive', '--trash'])).code).toBe(2)
})

test('a session is shown with its totals and branches, and its tree on request', async () => {
  const id = await home.session(async (session) => {
    const asked = await user(session, 'read it')
    await assistant(session, 'yes', call('c1', 'read', { path: 'a.txt' }))
    await session.append({
      type: 'tool_start',
      toolStart: { runId: 'r', callId: 'c1', name: 'read', entryId: asked, childSession: 'child-1' },
    })
    await toolResult(session, 'c1', 'content')
    await session.branch(asked)
    await assistant(session, 'another way')
  })
  const { out } = await home.run(['sessions', 'show', 'last', '--tree'])
  expect(out).toContain('branches      1: at 3 (2)')
  expect(out).toContain(
    '● 3 (subagent child-1) user  read it\n├─ ○ 4 assistant  yes [read a.txt]\n│  ○ 6 tool result  content\n◉ 8 assistant',
  )
  const shown = await home.json('sessions', 'show', id, '--tree')
  expect(shown).toMatchObject({ id, message_count: 4, path_length: 2, damage: [], branches: [{ entries: 2 }] })
  expect(shown['tree']).toHaveLength(4)
})

test('sessions are renamed, and entries are labeled by number, label or id', async () => {
  const id = await home.session((session) => user(session, 'hello'))
  expect(await home.json('sessions', 'rename', id, 'a', 'better', 'name')).toEqual({ id, name: 'a better name' })
  const { entry_id: entryId } = await home.json('sessions', 'label', 'a better name', '3', 'the start')
  expect(await home.json('sessions', 'label', id, 'the start', 'renamed')).toMatchObject({
    entry_id: entryId,
    label: 'renamed',
  })
  expect(await home.json('sessions', 'show', id)).toMatchObject({
    name: 'a better name',
    labels: { [String(entryId)]: 'renamed' },
  })
  expect((await home.run(['sessions', 'label', id, 'renamed'])).err).toContain('Removed the label')
  const { code, err } = await home.run(['sessions', 'label', id, '99', 'x'])
  expect([code, err]).toEqual([5, expect.stringContaining('There is no entry "99"')])
})

test('a fork has everything, or everything before an entry', async () => {
  const id = await home.session(async (session) => {
    await user(session, 'one')
    await assistant(session, 'two')
  })
  const whole = await home.run(['sessions', 'fork', id, '--name', 'copy'])
  expect(await home.json('sessions', 'show', whole.out.trim())).toMatchObject({
    name: 'copy',
    message_count: 2,
    parent_session: id,
  })
  const part = await home.json('sessions', 'fork', id, '--at', '3')
  expect(await home.json('sessions', 'show', String(part['id']))).toMatchObject({ message_count: 1, cwd: home.cwd })
})

test('a session is archived, deleted and restored', async () => {
  const id = await home.session((session) => user(session, 'hello'))
  for (const [verb, place] of [
    ['archive', '--archive'],
    ['delete', '--trash'],
  ] as const) {
    const { err } = await home.run(['sessions', verb, id])
    expect(err).toContain(`tapetree sessions restore ${id}`)
    expect(await home.json('sessions', 'list')).toMatchObject({ sessions: [] })
    expect(await home.json('sessions', 'list', place)).toMatchObject({ sessions: [{ id }] })
    expect((await home.run(['sessions', 'restore', id.slice(0, 12)])).code).toBe(0)
  }
  expect(await home.json('sessions', 'list')).toMatchObject({ sessions: [{ id }] })
  expect((await home.run(['sessions', 'restore', id])).code).toBe(5)
})

test('a session is deleted for good from any place, with its prompts, and its forks are listed', async () => {
  const history = join(placesOf({ home: home.root, env: home.env }).state, 'history.jsonl')
  for (const verb of ['archive', 'delete', undefined]) {
    const id = await home.session((session) => user(session, 'my tangerine42 secret'))
    const fork = String((await home.json('sessions', 'fork', id, '--at', '3'))['id'])
    await mkdir(dirname(history), { recursive: true })
    const prompts = [
      'my tangerine42 secret',
      { text: '/template tangerine42', session: id },
      'other',
      { text: 'x', session: 'y' },
    ]
    await writeFile(history, prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join(''))
    if (verb) await home.run(['sessions', verb, id])
    const refused = await home.run(['sessions', 'delete', id, '--forever'])
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('--forever requires --yes')])
    expect(await home.json('sessions', 'delete', id, '--forever', '--yes')).toEqual({ id, erased: true, forks: [fork] })
    expect((await home.run(['sessions', 'delete', id, '--forever', '--yes'])).code).toBe(5)
    const { err } = await home.run(['sessions', 'delete', fork, '--forever', '--yes'])
    expect(err).toBe(`Deleted session ${fork} for good.\n`)
    expect(await readFile(history, 'utf8')).toBe('"other"\n{"text":"x","session":"y"}\n')
    for (const path of await readdir(home.root, { recursive: true, withFileTypes: true })) {
      if (path.isFile()) expect(await readFile(join(path.parentPath, path.name), 'utf8')).not.toContain('tangerine42')
    }
  }
})

test('deleting a session for good asks on a terminal', async () => {
  const id = await home.session((session) => user(session, 'hello'))
  const no = await home.run(['sessions', 'delete', id, '--forever'], { stdin: 'n\n', isTTY: true })
  expect([no.code, no.err]).toEqual([0, expect.stringContaining('It cannot be restored. [y/N] Nothing was deleted.')])
  expect(await home.json('sessions', 'list')).toMatchObject({ sessions: [{ id }] })
  expect((await home.run(['sessions', 'delete', id, '--forever'], { stdin: 'y\n', isTTY: true })).code).toBe(0)
  expect(await home.json('sessions', 'list')).toMatchObject({ sessions: [] })
})

test('a session that is open elsewhere is not moved, and is changed only if its owner answers', async () => {
  await using session = await home.store.create({ cwd: home.cwd })
  for (const args of [
    ['delete', session.id],
    ['delete', session.id, '--forever', '--yes'],
    ['rename', session.id, 'x'],
  ]) {
    const { code, err } = await home.run(['sessions', ...args])
    expect([code, err]).toEqual([6, expect.stringContaining(`tapetree attach ${session.id}`)])
  }
})
