import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { findSessions } from './find-sessions.ts'
import type { FoundSession } from './import-source.ts'
import { sources } from './sources.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A home folder with these files. Objects are written as JSON, lists as JSON lines. */
async function homeWith(files: Record<string, object | string>): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'find-sessions-'))
  cleanUps.push(() => rm(home, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, name)), { recursive: true })
    const text = Array.isArray(content)
      ? content.map((line) => `${JSON.stringify(line)}\n`).join('')
      : JSON.stringify(content)
    await writeFile(join(home, name), typeof content === 'string' ? content : text)
  }
  return home
}

const storage = '.local/share/opencode/storage'
const part = (id: string, text: string): Record<string, object> => ({
  [`${storage}/part/${id.slice(1)}/${id}.json`]: { id, type: 'text', text },
})

async function fatesOf({ source, session, lines }: FoundSession): Promise<string[]> {
  const reader = sources[source].reader(session)
  const fates: string[] = []
  for await (const line of lines()) {
    if (line.type === 'unreadable') fates.push(line.reason)
    else fates.push(reader.take(line).kind)
  }
  return fates
}

test('opencode: a message that was half written is reported, and its parts are read', async () => {
  const home = await homeWith({
    [`${storage}/session/p/ses_1.json`]: { id: 'ses_1', directory: '/project', time: { created: 1, updated: 2 } },
    [`${storage}/message/ses_1/m1.json`]: { id: 'm1', role: 'user', time: { created: 1 } },
    [`${storage}/message/ses_1/m2.json`]: '{"id":"m2","ro',
    ...part('pm1', 'How?'),
    ...part('pm2', 'So.'),
    [`${storage}/part/m2/q.json`]: '',
  })
  const { sessions, unusable } = await findSessions({ machine: { home, env: {} } })
  expect([sessions.length, unusable]).toEqual([1, []])
  const [found] = sessions as [FoundSession]
  expect((await fatesOf(found)).toSorted()).toEqual([
    'malformed',
    'malformed',
    'message',
    'part (text)',
    'part (text)',
    'session',
  ])
})

test('opencode: links in its folder are not followed', async () => {
  const elsewhere = await homeWith({ 'secret/m9.json': { id: 'm9', role: 'user' } })
  const home = await homeWith({ [`${storage}/session/p/ses_1.json`]: { id: 'ses_1' }, [`${storage}/message/x`]: '' })
  await symlink(join(elsewhere, 'secret'), join(home, storage, 'message/ses_1'))
  await symlink(join(elsewhere, 'secret'), join(home, storage, 'session/q'))
  const { sessions, unusable } = await findSessions({ machine: { home, env: {} } })
  expect(unusable).toEqual([])
  expect(await Promise.all(sessions.map(fatesOf))).toEqual([['session']])
})

test('Gemini CLI: a pipe in the place of the name of a project does not hold up the import', async () => {
  const home = await homeWith({
    '.gemini/tmp/h/chats/a.jsonl': [{ sessionId: 's1', projectHash: 'h', startTime: '2026-11-18T20:00:00.000Z' }],
  })
  execFileSync('mkfifo', [join(home, '.gemini/tmp/h/.project_root')])
  const { sessions } = await findSessions({ machine: { home, env: {} } })
  expect(sessions.map(({ session }) => session)).toEqual([{ id: 's1' }])
})

test('files of the first versions are recognized by their paths, too', async () => {
  const id = '019f0000-0000-7000-8000-000000000001'
  const timestamp = '2025-05-01T10:00:00.000Z'
  const summaries = Array.from({ length: 12 }, (_, leafUuid) => ({ type: 'summary', summary: 'Caches', leafUuid }))
  const home = await homeWith({
    [`downloads/rollout-2025-05-01T10-00-00-${id}.jsonl`]: [{ id, timestamp, instructions: null }],
    [`downloads/${id}.jsonl`]: [...summaries, { sessionId: id, uuid: 'a', type: 'user', timestamp }],
  })
  const { sessions } = await findSessions({ machine: { home, env: {} }, paths: [join(home, 'downloads')] })
  expect(sessions.map(({ source, session }) => `${source} ${session.id}`).toSorted()).toEqual([
    `claude-code ${id}`,
    `codex ${id}`,
  ])
})
