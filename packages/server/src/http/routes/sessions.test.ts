import { script } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { TestApi, type TestApiOptions } from '../testing/test-api.ts'

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function start(options?: TestApiOptions): TestApi {
  const api = new TestApi(options)
  cleanUps.push(async () => {
    await api.close()
    expect(api.faults).toEqual([])
  })
  return api
}

async function body<T = Record<string, unknown>>(response: Response | Promise<Response>): Promise<T> {
  return (await (await response).json()) as T
}

describe('a session', () => {
  test('is created, listed, read, moved to the trash and restored', async () => {
    const api = start()
    const created = await api.post('/api/sessions', { cwd: '/', name: 'first' })
    expect(created.status).toBe(201)
    const { id } = await body<{ id: string }>(created)
    const path = `/api/sessions/${id}`
    const location = new URL(created.headers.get('location') ?? '', 'http://localhost/api/sessions')
    expect(location.href).toBe(`http://localhost${path}`)
    expect(await body(api.get('/api/sessions'))).toMatchObject({ sessions: [{ id, name: 'first', cwd: '/' }] })
    expect(await body(api.get(path))).toMatchObject({ id, name: 'first', status: 'idle', run_id: null })
    expect((await api.delete(path)).status).toBe(204)
    const gone = await api.get(path)
    expect([gone.status, await body(gone)]).toMatchObject([404, { type: 'session-not-found', status: 404 }])
    expect(gone.headers.get('content-type')).toBe('application/problem+json')
    expect((await api.delete(path)).status).toBe(404)
    expect(await body(api.get('/api/sessions'))).toEqual({ sessions: [] })
    expect(await body(api.get('/api/sessions?place=trash'))).toMatchObject({ sessions: [{ id }] })
    expect(await body(api.post(`${path}/restore`))).toEqual({ id, place: 'active' })
    expect((await api.get(path)).status).toBe(200)
  })

  test('says why its last run failed, in the list as well, until another one starts', async () => {
    const api = start({ script: script().error('auth', 'The key is wrong.').step().text('Done.') })
    const path = await api.session()
    const failed = { status: 'idle', failed: { reason: 'The key is wrong.' } }
    await api.post(`${path}/prompt`, { text: 'go' })
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject(failed))
    expect(await body(api.get('/api/sessions'))).toMatchObject({ sessions: [failed] })
    await api.post(`${path}/prompt`, { text: 'go on' })
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle', message_count: 3 }))
    expect(await body(api.get(path))).not.toHaveProperty('failed')
  })

  test('is not created if it could not be opened for its prompt', async () => {
    const go = Promise.withResolvers<void>()
    const api = start({ script: script().do(() => go.promise), otherwise: () => script().text('Done.'), maxLive: 1 })
    const first = await api.session({ prompt: 'go' })
    const refused = await api.post('/api/sessions', { cwd: '/', prompt: 'me too' })
    expect([refused.status, await body(refused)]).toMatchObject([503, { type: 'too-many-sessions' }])
    expect(refused.headers.get('retry-after')).toBe('1')
    const { sessions } = await body<{ sessions: { id: string }[] }>(api.get('/api/sessions'))
    expect(sessions.map(({ id }) => `/api/sessions/${id}`)).toEqual([first])
    // Without a prompt it needs no room.
    expect((await api.post('/api/sessions', { cwd: '/' })).status).toBe(201)
    go.resolve()
  })

  test('takes room that no other new session gets', async () => {
    const api = start({ otherwise: () => script().text('Done.'), maxLive: 3 })
    const asked = Array.from({ length: 8 }, () => api.post('/api/sessions', { cwd: '/', prompt: 'go' }))
    const statuses = (await Promise.all(asked)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 201)).toHaveLength(3)
    expect(statuses.filter((status) => status === 503)).toHaveLength(5)
    expect((await body<{ sessions: unknown[] }>(api.get('/api/sessions'))).sessions).toHaveLength(3)
  })

  test('is deleted for good from any place while it runs, and its forks are listed', async () => {
    const go = Promise.withResolvers<void>()
    const api = start({ script: script().do(() => go.promise) })
    const path = await api.session({ prompt: 'go' })
    const id = path.split('/').at(-1)
    const { id: fork } = await body<{ id: string }>(api.post(`${path}/fork`, {}))
    expect((await api.delete(`${path}?erase=perhaps`)).status).toBe(422)
    const erased = api.delete(`${path}?erase=true`)
    go.resolve()
    expect(await body(erased)).toEqual({ id, forks: [fork] })
    expect((await api.get(path)).status).toBe(404)
    expect((await api.post(`${path}/restore`)).status).toBe(404)
    expect((await api.delete(`${path}?erase=true`)).status).toBe(404)
    expect((await api.delete(`/api/sessions/${fork}`)).status).toBe(204)
    expect(await body(api.delete(`/api/sessions/${fork}?erase=true`))).toEqual({ id: fork, forks: [] })
    for (const place of ['active', 'archive', 'trash']) {
      expect(await body(api.get(`/api/sessions?place=${place}`))).toEqual({ sessions: [] })
    }
  })

  test('is archived and restored, but not while it runs', async () => {
    const go = Promise.withResolvers<void>()
    const api = start({
      script: script()
        .do(() => go.promise)
        .text('done'),
    })
    const path = await api.session({ prompt: 'go' })
    expect(await body(api.post(`${path}/archive`))).toMatchObject({ status: 409, type: 'session-busy' })
    go.resolve()
    await vi.waitFor(async () => expect((await api.post(`${path}/archive`)).status).toBe(200))
    expect((await api.get(path)).status).toBe(404)
    expect(await body(api.get('/api/sessions?place=archive'))).toMatchObject({ sessions: [{}] })
    expect((await api.post(`${path}/unarchive`)).status).toBe(200)
    expect(await body(api.get(path))).toMatchObject({ message_count: 2 })
  })

  test.each([
    ['archived', (api: TestApi, path: string) => api.post(`${path}/archive`)],
    ['deleted', (api: TestApi, path: string) => api.delete(path)],
    ['erased', (api: TestApi, path: string) => api.delete(`${path}?erase=true`)],
  ])('is not %s while another process writes it, and its clients stay connected', async (_, move) => {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-owned-'))
    cleanUps.push(() => rm(folder, { recursive: true }))
    // Each store stands for a process.
    const owning = openFileStore({ folder })
    cleanUps.push(() => owning.close())
    const api = start({ store: openFileStore({ folder }) })
    const { id } = await owning.create({ cwd: '/' })
    const live = await api.sessions.get(id)
    const refused = await move(api, `/api/sessions/${id}`)
    expect([refused.status, await body(refused)]).toMatchObject([409, { type: 'session-owned' }])
    expect([live.isWatched, live.isClosed]).toEqual([true, false])
  })

  test('that runs is stopped when it is deleted', async () => {
    const go = Promise.withResolvers<void>()
    const api = start({
      script: script()
        .do(() => go.promise)
        .text('never said'),
    })
    const path = await api.session({ prompt: 'go' })
    const deleted = api.delete(path)
    go.resolve()
    expect((await deleted).status).toBe(204)
    await api.post(`${path}/restore`)
    expect(await body(api.get(path))).toMatchObject({ status: 'idle', run_id: null })
  })

  test('is created with a prompt, once for each key', async () => {
    const api = start({ script: script().text('hello') })
    const asked = { headers: { 'idempotency-key': 'create-1' } }
    const first = await body<{ id: string }>(api.post('/api/sessions', { cwd: '/', prompt: 'hi' }, asked))
    expect(first).toMatchObject({ prompt: { outcome: 'started' } })
    const again = await api.post('/api/sessions', { cwd: '/', prompt: 'hi' }, asked)
    expect([again.status, await body(again)]).toMatchObject([201, { id: first.id, prompt: { outcome: 'started' } }])
    const live = await api.sessions.get(first.id)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    expect(live.session.info.messageCount).toBe(2)
    expect((await body<{ sessions: unknown[] }>(api.get('/api/sessions'))).sessions).toHaveLength(1)
  })

  test('is listed in pages, and found by status, folder and text', async () => {
    const api = start()
    for (const name of ['one', 'two', 'three']) await api.session({ name })
    const first = await body<{ sessions: { name: string }[]; cursor: string }>(api.get('/api/sessions?limit=2'))
    const rest = await body<typeof first>(api.get(`/api/sessions?limit=2&cursor=${first.cursor}`))
    expect([...first.sessions, ...rest.sessions].map(({ name }) => name).sort()).toEqual(['one', 'three', 'two'])
    expect(rest.cursor).toBeUndefined()
    expect(await body(api.get('/api/sessions?q=tw'))).toMatchObject({ sessions: [{ name: 'two' }] })
    expect(await body(api.get('/api/sessions?status=running'))).toEqual({ sessions: [] })
    expect(await body(api.get('/api/sessions?cwd=/elsewhere'))).toEqual({ sessions: [] })
    expect((await api.get('/api/sessions?limit=0')).status).toBe(422)
    expect((await api.get('/api/sessions?status=odd')).status).toBe(422)
  })

  test('works inside of the allowed folders, with links resolved', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tapetree-roots-'))
    cleanUps.push(() => rm(folder, { recursive: true }))
    for (const each of ['root/inner', 'root-evil']) await mkdir(join(folder, each), { recursive: true })
    await symlink(join(folder, 'root-evil'), join(folder, 'root/link'))
    const api = start({ parts: { roots: () => [join(folder, 'root')] } })
    const statusFor = async (cwd: string): Promise<number> => (await api.post('/api/sessions', { cwd })).status
    expect(await statusFor(join(folder, 'root'))).toBe(201)
    expect(await statusFor(join(folder, 'root/inner'))).toBe(201)
    expect(await statusFor(join(folder, 'root/inner/../..'))).toBe(403)
    expect(await statusFor(join(folder, 'root-evil'))).toBe(403)
    expect(await statusFor(join(folder, 'root/link'))).toBe(403)
    expect(await statusFor(join(folder, 'root/none'))).toBe(404)
    expect(await statusFor('inner')).toBe(422)
  })

  test('is not created with an unknown agent', async () => {
    const api = start()
    expect(await body(api.post('/api/sessions', { cwd: '/', agent: 'other' }))).toMatchObject({ type: 'unknown-agent' })
    expect((await api.post('/api/sessions', { cwd: '/', agent: 'tapetree' })).status).toBe(201)
  })
})

describe('a patch', () => {
  test('changes what it names, only if its ETag still matches', async () => {
    const api = start()
    const path = await api.session({ name: 'before' })
    const etag = (await api.get(path)).headers.get('etag') ?? ''
    const patched = await api.patch(path, { name: 'after', mode: 'plan' }, { headers: { 'if-match': etag } })
    expect([patched.status, await body(patched)]).toMatchObject([200, { name: 'after', mode: 'plan' }])
    const late = await api.patch(path, { name: 'late' }, { headers: { 'if-match': etag } })
    expect([late.status, await body(late)]).toMatchObject([412, { type: 'changed-meanwhile' }])
    const newer = patched.headers.get('etag') ?? ''
    expect(await body(api.get(path))).toMatchObject({ name: 'after' })
    expect((await api.patch(path, { name: null }, { headers: { 'if-match': newer } })).status).toBe(200)
    expect(await body(api.get(path))).toMatchObject({ name: '' })
    expect((await api.patch(path, { name: 'any' }, { headers: { 'if-match': '*' } })).status).toBe(200)
  })

  test('by two clients at the same time succeeds for one of them', async () => {
    const api = start()
    const path = await api.session()
    const etag = (await api.get(path)).headers.get('etag') ?? ''
    const names = ['left', 'right']
    const answers = await Promise.all(names.map((name) => api.patch(path, { name }, { headers: { 'if-match': etag } })))
    expect(answers.map(({ status }) => String(status)).sort()).toEqual(['200', '412'])
  })

  test('that is resent under its key is not a conflict', async () => {
    const api = start()
    const path = await api.session()
    const headers = { 'if-match': (await api.get(path)).headers.get('etag') ?? '', 'idempotency-key': 'patch-1' }
    expect((await api.patch(path, { name: 'new' }, { headers })).status).toBe(200)
    const { head } = await body<{ head: unknown }>(api.get(path))
    expect((await api.patch(path, { name: 'new' }, { headers })).status).toBe(200)
    expect(await body(api.get(path))).toMatchObject({ head, name: 'new' })
  })

  test('of which one part needs a larger role changes nothing', async () => {
    const api = start()
    const path = await api.session({ name: 'before' })
    const { head } = await body<{ head: unknown }>(api.get(path))
    const refused = await api.patch(path, { name: 'after', mode: 'plan' }, { role: 'queue' })
    expect([refused.status, await body(refused)]).toMatchObject([403, { type: 'role-too-small', needs: 'drive' }])
    expect(await body(api.get(path))).toMatchObject({ name: 'before', head })
  })

  test('needs the role of its change', async () => {
    const api = start()
    const path = await api.session()
    expect((await api.patch(path, { name: 'x' }, { role: 'queue' })).status).toBe(200)
    expect(await body(api.patch(path, { mode: 'auto' }, { role: 'queue' }))).toMatchObject({ status: 403 })
    expect(await body(api.patch(path, { colour: 'red' }))).toMatchObject({ status: 422, type: 'invalid-request' })
    const odd = api.patch(path, { model: { provider: 'none', model_id: 'none' } })
    expect(await body(odd)).toMatchObject({ status: 422, type: 'model-not-usable' })
    const merge = { 'content-type': 'application/merge-patch+json' }
    expect((await api.patch(path, { name: 'y' }, { headers: merge })).status).toBe(200)
  })
})

describe('a fork', () => {
  test('that is requested again with its key keeps the name it was given since', async () => {
    const api = start()
    const path = await api.session()
    const fork = (): Promise<Response> =>
      api.post(`${path}/fork`, { name: 'first' }, { headers: { 'idempotency-key': 'fork-2' } })
    const { id } = await body<{ id: string }>(fork())
    expect((await api.patch(`/api/sessions/${id}`, { name: 'second' })).status).toBe(200)
    expect(await body(fork())).toMatchObject({ id, name: 'second' })
  })

  test('has the path to an entry, or all entries, and is created once for each key', async () => {
    const api = start({ script: script().text('one').step().text('two') })
    const path = await api.session({ prompt: 'a' })
    const live = await api.sessions.get(path.slice(14))
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    const { nodes } = await body<{ nodes: { id: string; role?: string }[] }>(api.get(`${path}/tree`))
    const said = nodes.find(({ role }) => role === 'user')?.id
    const whole = await body(api.post(`${path}/fork`, {}))
    expect(whole).toMatchObject({ message_count: 2, parent_session: path.slice(14) })
    const headers = { 'idempotency-key': 'fork-1' }
    const part = await body(api.post(`${path}/fork`, { entry_id: said, name: 'part' }, { headers }))
    expect(part).toMatchObject({ message_count: 1, name: 'part' })
    expect(await body(api.post(`${path}/fork`, { entry_id: said, name: 'part' }, { headers }))).toMatchObject({
      id: part['id'],
      head: part['head'],
    })
    expect(await body(api.post(`${path}/fork`, { entry_id: 'none' }))).toMatchObject({ type: 'entry-not-found' })
  })
})

describe('a request', () => {
  test('whose body is malformed, too large or too deep is rejected with a problem', async () => {
    const api = start()
    const path = await api.session()
    const raw = (text: string, type = 'application/json'): Promise<Response> =>
      api.request(`${path}/prompt`, { method: 'POST', body: text, headers: { 'content-type': type } })
    expect(await body(raw('{'))).toMatchObject({ status: 400, type: 'malformed-request' })
    expect(await body(raw('{}', 'text/plain'))).toMatchObject({ status: 415 })
    expect(await body(raw(`${'['.repeat(65)}${']'.repeat(65)}`))).toMatchObject({ status: 422, type: 'too-deep' })
    expect(await body(raw(`{"text":"${'[[['.repeat(50)}"}`))).toMatchObject({ outcome: 'started' })
    expect(await body(raw(`"${'x'.repeat(9_000_000)}"`))).toMatchObject({ status: 413, type: 'too-large' })
  })

  test('for an unknown path gets a problem', async () => {
    const api = start()
    expect(await body(api.get('/api/nothing'))).toMatchObject({ status: 404, type: 'not-found' })
    expect(await body(api.get('/api/sessions/none'))).toMatchObject({ status: 404, type: 'session-not-found' })
    expect(await body(api.get('/api/sessions/a.b'))).toMatchObject({ status: 422, type: 'invalid-request' })
    expect(await body(api.get('/api/sessions/..%2F..%2Fetc'))).toMatchObject({ status: 422 })
  })
})
