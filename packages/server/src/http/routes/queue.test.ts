import { script } from '@tapetree/agent/testing'
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

/** A session whose agent is busy until the test releases it. */
async function busy(): Promise<{ api: TestApi; path: string; go: () => void }> {
  const held = Promise.withResolvers<void>()
  const api = start({
    script: script()
      .do(() => held.promise)
      .text('done'),
    otherwise: () => script().text('next'),
  })
  cleanUps.push(() => Promise.resolve(held.resolve()))
  const path = await api.session({ prompt: 'go' })
  return { api, path, go: () => held.resolve() }
}

async function body<T = Record<string, unknown>>(response: Response | Promise<Response>): Promise<T> {
  return (await (await response).json()) as T
}

interface Added {
  id: string
  message: string
  queued_at: string
}

async function add(api: TestApi, path: string, message: string): Promise<Added> {
  return body<Added>(api.post(`${path}/queue`, { message, image_ids: [] }))
}

describe('the queue', () => {
  test('adds, lists, returns and removes messages in the shapes of the specification', async () => {
    const { api, path } = await busy()
    const added = await api.post(`${path}/queue`, { message: "What's the status?", image_ids: [] })
    expect(added.status).toBe(201)
    const first = await body<Added>(added)
    expect(first).toEqual({ id: first.id, message: "What's the status?", queued_at: first.queued_at })
    expect(first.id).toMatch(/^q-\d+-[0-9a-f]{8}$/)
    const second = await add(api, path, 'two')
    expect(await body(api.get(`${path}/queue`))).toEqual({
      messages: [
        { ...first, image_ids: [], client_id: 'rest' },
        { ...second, image_ids: [], client_id: 'rest' },
      ],
      count: 2,
    })
    expect(await body(api.get(`${path}/queue/${first.id}`))).toEqual({ ...first, image_ids: [], client_id: 'rest' })
    expect((await api.delete(`${path}/queue/${first.id}`)).status).toBe(204)
    expect((await api.delete(`${path}/queue/${first.id}`)).status).toBe(404)
    expect((await api.get(`${path}/queue/${first.id}`)).status).toBe(404)
    expect(await body(api.get(`${path}/queue`))).toMatchObject({ messages: [{ message: 'two' }], count: 1 })
    expect((await api.delete(`${path}/queue`)).status).toBe(204)
    expect(await body(api.get(`${path}/queue`))).toEqual({ messages: [], count: 0 })
  })

  test('contains only follow-ups, no steers', async () => {
    const { api, path } = await busy()
    expect(await body(api.post(`${path}/prompt`, { text: 'now', when_busy: 'steer' }))).toMatchObject({
      outcome: 'steered',
    })
    const later = await body(api.post(`${path}/prompt`, { text: 'later' }))
    expect(later).toMatchObject({ outcome: 'queued' })
    expect(await body(api.get(`${path}/queue`))).toMatchObject({ messages: [{ message: 'later' }], count: 1 })
    expect((await api.delete(`${path}/queue`)).status).toBe(204)
    const live = await api.sessions.get(path.slice(14))
    expect(live.session.inbox.messages.map(({ message }) => message)).toEqual(['now'])
  })

  test('adds a message once, however often it is sent under its key', async () => {
    const { api, path } = await busy()
    const headers = { 'idempotency-key': 'add-1', 'x-client-id': 'phone' }
    const [left, right] = await Promise.all([
      body(api.post(`${path}/queue`, { message: 'once' }, { headers })),
      body(api.post(`${path}/queue`, { message: 'once' }, { headers })),
    ])
    expect(left).toEqual(right)
    expect(await body(api.get(`${path}/queue`))).toMatchObject({ count: 1, messages: [{ client_id: 'phone' }] })
    const id = String(left['id'])
    const drop = { headers: { 'idempotency-key': 'drop-1' } }
    expect((await api.delete(`${path}/queue/${id}`, drop)).status).toBe(204)
    expect((await api.delete(`${path}/queue/${id}`, drop)).status).toBe(204)
    const other = api.post(`${path}/prompt`, { text: 'x' }, { headers: { 'idempotency-key': 'drop-1' } })
    expect(await body(other)).toMatchObject({ status: 422, type: 'key-reused' })
  })

  test('edits, moves and holds a message only if its ETag still matches', async () => {
    const { api, path, go } = await busy()
    const one = await add(api, path, 'one')
    const two = await add(api, path, 'two')
    const at = `${path}/queue/${two.id}`
    const etag = (await api.get(at)).headers.get('etag') ?? ''
    const edited = await api.patch(at, { message: 'TWO', before_id: one.id }, { headers: { 'if-match': etag } })
    expect([edited.status, await body(edited)]).toMatchObject([200, { message: 'TWO' }])
    expect((await api.patch(at, { message: 'late' }, { headers: { 'if-match': etag } })).status).toBe(412)
    expect(await body(api.get(`${path}/queue`))).toMatchObject({ messages: [{ message: 'TWO' }, { message: 'one' }] })
    expect((await api.patch(at, { held: true })).status).toBe(200)
    expect((await api.patch(at, { message: ' ' })).status).toBe(422)
    expect((await api.patch(`${path}/queue/none`, { held: true })).status).toBe(404)
    go()
    await vi.waitFor(async () => expect(await body(api.get(`${path}/queue`))).toMatchObject({ count: 1 }))
    const left = await body<{ messages: Added[] }>(api.get(`${path}/queue`))
    expect(left.messages.map(({ message }) => message)).toEqual(['TWO'])
    await api.patch(at, { held: false })
    await vi.waitFor(async () => expect(await body(api.get(`${path}/queue`))).toMatchObject({ count: 0 }))
  })

  test('changes nothing if one part of a change needs a larger role', async () => {
    const { api, path } = await busy()
    await add(api, path, 'one')
    const { id } = await add(api, path, 'two')
    const before = await body(api.get(`${path}/queue`))
    const { messages } = before as unknown as { messages: Added[] }
    const changes = { before_id: messages[0]?.id, message: 'TWO', delivery: 'steer' }
    expect(await body(api.patch(`${path}/queue/${id}`, changes, { role: 'queue' }))).toMatchObject({ status: 403 })
    expect(await body(api.get(`${path}/queue`))).toEqual(before)
  })

  test('changed by two clients with the same ETag takes the change of one of them', async () => {
    const { api, path } = await busy()
    const png = Uint8Array.from(Buffer.from('89504e470d0a1a0a', 'hex'))
    const stored = await api.post(`${path}/images`, png, { headers: { 'content-type': 'image/png' } })
    const { id: image } = await body<{ id: string }>(stored)
    const at = `${path}/queue/${(await add(api, path, 'one')).id}`
    const headers = { 'if-match': (await api.get(at)).headers.get('etag') ?? '' }
    // An image is looked up before the change is made.
    const changes = [{ image_ids: [image] }, { message: 'ONE' }]
    const answers = await Promise.all(changes.map((change) => api.patch(at, change, { headers })))
    expect(answers.map(({ status }) => status)).toEqual([200, 412])
  })

  test('rejects an empty message before it is queued', async () => {
    const { api, path } = await busy()
    expect(await body(api.post(`${path}/queue`, { message: ' ' }))).toMatchObject({ status: 422, type: 'empty-prompt' })
    expect((await api.post(`${path}/queue`, {})).status).toBe(422)
    expect(await body(api.get(`${path}/queue`))).toMatchObject({ count: 0 })
  })
})

describe('a run', () => {
  test('is cancelled only by its own id', async () => {
    const { api, path, go } = await busy()
    const { run_id } = await body<{ run_id: string }>(api.get(path))
    expect(await body(api.post(`${path}/cancel`, { run_id: 'other' }))).toMatchObject({
      status: 409,
      type: 'run-not-current',
      run_id,
    })
    const cancelled = api.post(`${path}/cancel`, { run_id })
    go()
    expect((await cancelled).status).toBe(202)
    expect(await body(cancelled)).toEqual({ run_id })
    expect(await body(api.get(path))).toMatchObject({ status: 'idle', run_id: null })
  })

  test('is not started twice, and resumes on request', async () => {
    const { api, path, go } = await busy()
    const again = api.post(`${path}/prompt`, { text: 'more', when_busy: 'reject' })
    expect(await body(again)).toMatchObject({ status: 409, type: 'session-busy' })
    expect((await api.post(`${path}/compact`)).status).toBe(409)
    expect((await api.post(`${path}/retry`)).status).toBe(409)
    go()
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    expect(await body(api.post(`${path}/resume`))).toEqual({ run_id: null })
    const retried = await api.post(`${path}/retry`)
    expect([retried.status, await body(retried)]).toMatchObject([202, { run_id: expect.any(String) }])
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    expect(await body(api.post(`${path}/compact`))).toMatchObject({ outcome: expect.any(String) })
    expect((await api.post(`${path}/prompt`, { text: ' ' })).status).toBe(422)
  })

  test('that was started before a restart is recognized by its key', async () => {
    const { api, path, go } = await busy()
    const id = path.slice(14)
    go()
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    const headers = { 'idempotency-key': 'prompt-1' }
    const first = await body(api.post(`${path}/prompt`, { text: 'again' }, { headers }))
    const live = await api.sessions.get(id)
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    await api.sessions.release(id)
    const second = await body(api.post(`${path}/prompt`, { text: 'again' }, { headers }))
    expect(second).toEqual(first)
  })
})
