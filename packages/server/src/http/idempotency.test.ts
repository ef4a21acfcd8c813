import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import type { DiskLine } from '@tapetree/session/format'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TestApi } from './testing/test-api.ts'

let folder: string
let api: TestApi
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'idempotency-'))
  api = open()
})
afterEach(async () => {
  await api.close()
  await rm(folder, { recursive: true, force: true })
})

function open(): TestApi {
  return new TestApi({ store: openFileStore({ folder: join(folder, 'sessions') }) })
}

async function restart(): Promise<void> {
  await api.close()
  api = open()
}

interface Reply {
  status: number
  body: Record<string, unknown>
}

async function post(path: string, body: unknown, headers: Record<string, string>): Promise<Reply> {
  const response = await api.post(path, body, { headers })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const keyed = (key: string, token = 'test'): Record<string, string> => ({
  'idempotency-key': key,
  'x-test-token': token,
})

async function messagesIn(session: string): Promise<string[]> {
  const { messages } = (await (await api.get(`${session}/queue`)).json()) as { messages: { message: string }[] }
  return messages.map(({ message }) => message)
}

/** A session whose messages stay queued. */
async function heldSession(): Promise<string> {
  const session = await api.session()
  const live = await api.sessions.get(session.slice('/api/sessions/'.length))
  await live.perform('hold', 'owner', { op: 'queue.hold' })
  return session
}

describe('an idempotency key', () => {
  test.each([
    ['at once', async () => undefined],
    ['after a restart', restart],
  ])('with another body is rejected, %s', async (_when, meanwhile) => {
    const session = await heldSession()
    expect(await post(`${session}/queue`, { message: 'one' }, keyed('k'))).toMatchObject({ status: 201 })
    await meanwhile()
    const reused = { status: 422, body: { type: 'key-reused' } }
    expect(await post(`${session}/queue`, { message: 'two' }, keyed('k'))).toMatchObject(reused)
    expect(await post(`${session}/prompt`, { text: 'one' }, keyed('k'))).toMatchObject(reused)
    expect(await post(`${session}/queue`, { message: 'one' }, keyed('k'))).toMatchObject({ status: 201 })
    expect(await messagesIn(session)).toEqual(['one'])
  })

  test.each([
    ['at once', async () => undefined],
    ['after a restart', restart],
  ])('of one token is independent of that of another, %s', async (_when, meanwhile) => {
    const session = await heldSession()
    const first = await post(`${session}/queue`, { message: 'private' }, keyed('k', 'a'))
    await meanwhile()
    const second = await post(`${session}/queue`, { message: 'other' }, keyed('k', 'b'))
    expect(second).toMatchObject({ status: 201, body: { message: 'other' } })
    expect(await messagesIn(session)).toEqual(['private', 'other'])
    await restart()
    expect(await post(`${session}/queue`, { message: 'private' }, keyed('k', 'a'))).toEqual(first)
    expect(await post(`${session}/queue`, { message: 'other' }, keyed('k', 'b'))).toEqual(second)
  })

  test('identifies the same command as the id of a frame on a socket of the same token', async () => {
    const session = await heldSession()
    const live = await api.sessions.get(session.slice('/api/sessions/'.length))
    const sender = { tokenId: 'test', mayDrive: true }
    const frame = { op: 'queue.add', args: { message: 'one' }, sender }
    expect(await live.perform('k', 'screen', frame)).toMatchObject({ ok: true })
    expect(await post(`${session}/queue`, { message: 'one' }, keyed('k'))).toMatchObject({ status: 201 })
    expect(await post(`${session}/queue`, { message: 'two' }, keyed('l'))).toMatchObject({ status: 201 })
    const again = { op: 'queue.add', args: { message: 'two' }, sender }
    expect(await live.perform('l', 'screen', again)).toMatchObject({ ok: true, dup: true })
    expect(await live.perform('k', 'screen', { ...frame, sender: { tokenId: 'b', mayDrive: true } })).toMatchObject({
      ok: false,
      error: { type: 'key-reused', status: 422 },
    })
    expect(await messagesIn(session)).toEqual(['one', 'two'])
  })

  test('of a request with several commands is rejected with different ones', async () => {
    const session = await heldSession()
    const { body } = await post(`${session}/queue`, { message: 'one' }, {})
    const path = `${session}/queue/${String(body['id'])}`
    const change = (changes: object): Promise<Response> => api.patch(path, changes, { headers: keyed('k') })
    expect((await change({ message: 'two', before_id: null })).status).toBe(200)
    expect((await change({ message: 'two', before_id: null })).status).toBe(200)
    expect((await change({ held: true })).status).toBe(422)
    expect((await change({ message: 'three' })).status).toBe(422)
    expect(await messagesIn(session)).toEqual(['two'])
  })
})

describe('sessions created with an idempotency key', () => {
  test('at the same time are one, and every request gets the same response', async () => {
    const body = { cwd: '/', name: 'one', prompt: 'hello' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/api/sessions', body, keyed('k'))))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    expect((await api.store.list()).sessions).toHaveLength(1)
    const runs = { starts: 0 }
    const live = await api.sessions.get(String(answers[0]?.body['id']))
    for await (const line of live.session.lines()) {
      if (line.type === 'line' && (JSON.parse(line.text) as DiskLine).type === 'run_start') runs.starts++
    }
    expect(runs).toEqual({ starts: 1 })
  })

  test('at the same time by two servers are one', async () => {
    const other = open()
    try {
      const body = { cwd: '/' }
      const make = async (server: TestApi): Promise<Reply> => {
        const response = await server.post('/api/sessions', body, { headers: keyed('k') })
        return { status: response.status, body: (await response.json()) as Record<string, unknown> }
      }
      const answers = await Promise.all([make(api), make(other), make(api), make(other)])
      expect(answers.map(({ status, body: { id, type } }) => ({ status, id, type }))).toEqual(
        answers.map(() => ({ status: 201, id: answers[0]?.body['id'], type: undefined })),
      )
    } finally {
      await other.close()
    }
  })

  test('and another body are rejected, also after a restart; those of another token are created', async () => {
    const first = await post('/api/sessions', { cwd: '/', name: 'one' }, keyed('k'))
    const reused = { status: 422, body: { type: 'key-reused' } }
    expect(await post('/api/sessions', { cwd: '/', name: 'two' }, keyed('k'))).toMatchObject(reused)
    await restart()
    expect(await post('/api/sessions', { cwd: '/', name: 'two' }, keyed('k'))).toMatchObject(reused)
    expect(await post('/api/sessions', { cwd: '/', name: 'one' }, keyed('k'))).toMatchObject({
      status: 201,
      body: { id: first.body['id'] },
    })
    const other = await post('/api/sessions', { cwd: '/', name: 'two' }, keyed('k', 'another'))
    expect(other).toMatchObject({ status: 201, body: { name: 'two' } })
    expect(other.body['id']).not.toBe(first.body['id'])
  })

  test('as forks are one each, and another entry is rejected', async () => {
    const session = await api.session({ name: 'source' })
    const fork = (body: object): Promise<Reply> => post(`${session}/fork`, body, keyed('k'))
    const answers = await Promise.all([fork({ name: 'copy' }), fork({ name: 'copy' }), fork({ name: 'copy' })])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
    expect(new Set(answers.map(({ body }) => body['id'])).size).toBe(1)
    expect(await fork({ name: 'other' })).toMatchObject({ status: 422, body: { type: 'key-reused' } })
  })
})

test('a fork that was cut off by the end of its server is completed when it is requested again', async () => {
  const session = await api.session({ name: 'source' })
  const live = await api.sessions.get(session.slice('/api/sessions/'.length))
  for (const content of ['one', 'two']) await live.session.appendMessage('user', [{ type: 'text', text: { content } }])
  const fork = (): Promise<Reply> => post(`${session}/fork`, {}, keyed('k'))
  const { body } = await fork()
  expect(body).toMatchObject({ message_count: 2 })
  await api.close()
  const log = join(folder, 'sessions', String(body['id']), 'events.jsonl')
  const [header] = (await readFile(log, 'utf8')).split('\n')
  await writeFile(log, `${header}\n`)
  api = open()
  expect(await fork()).toMatchObject({ status: 201, body: { id: body['id'], message_count: 2 } })
})

describe('a client id', () => {
  test('over HTTP belongs to the token that used it first', async () => {
    const session = await heldSession()
    const as = (token: string): Record<string, string> => ({ 'x-client-id': 'laptop', 'x-test-token': token })
    expect(await post(`${session}/queue`, { message: 'mine' }, as('a'))).toMatchObject({ status: 201 })
    expect(await post(`${session}/queue`, { message: 'also mine' }, as('a'))).toMatchObject({ status: 201 })
    expect(await post(`${session}/queue`, { message: 'not mine' }, as('b'))).toMatchObject({
      status: 403,
      body: { type: 'client-id-taken' },
    })
    const stream = await api.get(`${session}/events/stream?client_id=laptop`, { headers: { 'x-test-token': 'b' } })
    expect(stream.status).toBe(403)
    expect(await messagesIn(session)).toEqual(['mine', 'also mine'])
  })

  test.each(['server', 'task', 'rest'])('%s is reserved for the server itself', async (name) => {
    const session = await heldSession()
    const { status } = await post(`${session}/queue`, { message: 'hi' }, { 'x-client-id': name })
    expect(status).toBe(403)
  })

  test('is logged with its token', async () => {
    const session = await heldSession()
    await post(`${session}/queue`, { message: 'hi' }, { 'x-client-id': 'laptop', 'x-test-token': 'a' })
    const { events } = (await (await api.get(`${session}/events`)).json()) as { events: { cause?: object }[] }
    expect(events.at(-1)?.cause).toMatchObject({ client: 'laptop', token: 'a' })
  })
})

test('storage errors are reported without the paths of the server', async () => {
  const real = nodeFilePort()
  const rename = async (from: string, to: string): Promise<void> => {
    throw Object.assign(new Error(`ENOSPC: no space left on device, rename '${from}' -> '${to}'`), { code: 'ENOSPC' })
  }
  const port = new Proxy(real, {
    get: (target, name) => (name === 'rename' ? rename : Reflect.get(target, name, target)),
  })
  const full = new TestApi({ store: openFileStore({ folder: join(folder, 'full'), port }) })
  try {
    const response = await full.post('/api/sessions', { cwd: '/' })
    const text = await response.text()
    expect(response.status).toBe(507)
    expect(text).toContain('ENOSPC')
    expect(text).not.toContain(folder)
  } finally {
    await full.close()
  }
})
