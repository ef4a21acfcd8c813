import { onlyModel, type Model } from '@tapetree/agent'
import { FakeClock, script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore, text } from '@tapetree/session'
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { ApiParts } from '../app.ts'
import { askingGate } from '../testing/asking-gate.ts'
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

/** Its hash covers its context, as with a real model. */
function hashingModel(says: ScriptBuilder): Model {
  const model = scriptedModel(says)
  const { provider, id, api, limits } = model
  return {
    ...{ provider, id, api, limits },
    prepare: (request) => {
      const call = model.prepare(request)
      const shown = JSON.stringify([request.system, request.messages])
      const stream: typeof call.stream = (signal) => call.stream(signal)
      return { stream, reference: { ...call.reference, sha256: createHash('sha256').update(shown).digest('hex') } }
    },
  }
}

/** A session after one prompt. */
async function told(options: TestApiOptions): Promise<{ api: TestApi; path: string; id: string }> {
  const api = start(options)
  const path = await api.session({ prompt: 'hello there' })
  const id = path.slice(14)
  const live = await api.sessions.get(id)
  await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
  return { api, path, id }
}

interface Nodes {
  nodes: { id: string; parent_id: string | null; seq: number; role?: string; preview: string; label?: string }[]
  has_before: boolean
  has_after: boolean
}

describe('the tree', () => {
  test('is listed in windows that fit together, in both directions', async () => {
    const { api, path, id } = await told({ script: script().text('answer') })
    const { session } = await api.sessions.get(id)
    for (let count = 0; count < 20; count++) await session.appendMessage('user', [text(`more ${count}`)])
    await session.setLabel(session.leafId ?? '', 'the end')
    const all = await body<Nodes>(api.get(`${path}/tree`))
    expect(all).toMatchObject({ has_before: false, has_after: false })
    expect(all.nodes.map(({ preview }) => preview)).toContain('hello there')
    expect(all.nodes.find(({ label }) => label === 'the end')).toMatchObject({ preview: 'more 19' })
    const forwards: Nodes['nodes'] = []
    for (let after = 0; ;) {
      const window = await body<Nodes>(api.get(`${path}/tree?after=${after}&limit=4`))
      forwards.push(...window.nodes)
      if (!window.has_after) break
      after = window.nodes.at(-1)?.seq ?? 0
    }
    expect(forwards).toEqual(all.nodes)
    const backwards: Nodes['nodes'] = []
    for (let query = 'limit=7'; ;) {
      const window = await body<Nodes>(api.get(`${path}/tree?${query}`))
      backwards.unshift(...window.nodes)
      if (!window.has_before) break
      query = `limit=7&before=${window.nodes[0]?.seq}`
    }
    expect(backwards).toEqual(all.nodes)
  })

  test('is compared at two leaves: common ancestor, entries and usage of each side', async () => {
    const { api, path, id } = await told({ script: script().text('answer') })
    const { session } = await api.sessions.get(id)
    const fork = session.leafId ?? ''
    const left = await session.appendMessage('user', [text('left')])
    await session.branch(fork)
    const usage = { inputTokens: 10, outputTokens: 5, cost: 0.5 }
    const right = await session.appendMessage('assistant', [text('right')], { with: { usage } })
    const compared = await body(api.get(`${path}/compare?left=${left}&right=${right}`))
    expect(compared).toMatchObject({
      common_ancestor: fork,
      left: { leaf_id: left, entry_count: 1, entries: [{ preview: 'left' }], usage: { total_tokens: 0 } },
      right: {
        entry_count: 1,
        entries: [{ preview: 'right' }],
        usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost: 0.5 },
      },
    })
    const same = await body(api.get(`${path}/compare?left=${left}&right=${left}`))
    expect(same).toMatchObject({ common_ancestor: left, left: { entry_count: 0 }, right: { entry_count: 0 } })
    expect((await api.get(`${path}/compare?left=${left}&right=none`)).status).toBe(404)
    expect((await api.get(`${path}/compare?left=${left}`)).status).toBe(422)
  })
})

describe('a window of entries', () => {
  interface Window {
    entries: { seq: number; id: string; type: string }[]
    leaf_id: string
    previous: number | null
    next: number | null
  }

  test('around a line or an entry fits together with the windows on both sides', async () => {
    const api = start({ otherwise: () => script().toolCall('call', 'act', {}).step().text('done') })
    const path = await api.session()
    for (let run = 0; run < 6; run++) {
      await api.post(`${path}/prompt`, { text: `question ${run} ${'x'.repeat(run)}` })
      await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    }
    const window = (query: string): Promise<Window> => body<Window>(api.get(`${path}/entries?${query}`))
    const { events } = await body<{ events: { seq: number; parent_id?: string | null }[] }>(api.get(`${path}/events`))
    const all = events.filter((line) => 'parent_id' in line)
    expect(await window('seq=0&before=0&after=500')).toMatchObject({ entries: all, previous: null, next: null })
    const middle = all[Math.floor(all.length / 2)] as { seq: number; id: string }
    for (const place of [`seq=${middle.seq}`, `entry_id=${middle.id}`]) {
      const around = await window(`${place}&before=2&after=3`)
      const index = all.findIndex(({ seq }) => seq === middle.seq)
      expect(around.entries).toEqual(all.slice(index - 2, index + 3))
      const together = [...around.entries]
      for (let { previous } = around; previous !== null;) {
        const page = await window(`seq=${previous}&before=4&after=0`)
        together.unshift(...page.entries)
        ;({ previous } = page)
      }
      for (let { next } = around; next !== null;) {
        const page = await window(`seq=${next}&before=0&after=4`)
        together.push(...page.entries)
        ;({ next } = page)
      }
      expect(together).toEqual(all)
    }
    // By default the newest.
    expect((await window('before=1')).entries).toEqual(all.slice(-1))
    expect(await window('seq=999999&before=0&after=0')).toMatchObject({ entries: [], next: null })
    expect(await window('seq=1&before=0&after=0')).toMatchObject({ entries: [], previous: null, next: 1 })
    expect((await api.get(`${path}/entries?entry_id=none`)).status).toBe(404)
    expect((await api.get(`${path}/entries?seq=-1`)).status).toBe(422)
  })
})

describe('the context', () => {
  test('gives each message its entry, and the reason why it is included', async () => {
    const { api, path, id } = await told({ script: script().text('answer') })
    const { session } = await api.sessions.get(id)
    const said = (await session.getContext()).messages[0]?.entryId
    const context = await body(api.get(`${path}/context`))
    expect(context).toMatchObject({
      entry_id: session.leafId,
      messages: [
        { entry_id: said, reason: 'path', message: { role: 'user' } },
        { reason: 'path', message: { role: 'assistant', content: [{ type: 'text' }] } },
      ],
      model: { provider: 'scripted', model_id: 'scripted-1' },
    })
    expect(await body(api.get(`${path}/context?entry_id=${said}`))).toMatchObject({ messages: [{ entry_id: said }] })
    await session.appendCompaction('short', session.leafId ?? '', 100)
    expect(await body(api.get(`${path}/context`))).toMatchObject({ messages: [{ reason: 'summary' }, {}] })
    expect((await api.get(`${path}/context?entry_id=none`)).status).toBe(404)
  })

  test('of an answer is the request that was sent for it', async () => {
    const model = hashingModel(script().text('answer'))
    const openModel = vi.fn<NonNullable<ApiParts['openModel']>>(() => Promise.resolve(model))
    const { api, path, id } = await told({ agent: { models: onlyModel(model) }, parts: { openModel } })
    const { session } = await api.sessions.get(id)
    const answerId = session.leafId ?? ''
    const entry = await body(api.get(`${path}/entries/${answerId}`))
    expect(entry).toMatchObject({ id: answerId, type: 'message', message: { role: 'assistant' } })
    const request = await body(api.get(`${path}/entries/${answerId}/request`))
    expect(request).toMatchObject({
      entry_id: answerId,
      recorded: { adapter: 'scripted', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      is_exact: true,
      verified: true,
      reason: 'The request rebuilt from the log has the recorded hash.',
      context: { messages: [{ message: { role: 'user' } }] },
    })
    expect(openModel).toHaveBeenCalledWith('local', { provider: 'scripted', modelId: 'scripted-1' })
    const said = (await session.getContext()).messages[0]?.entryId
    expect(await body(api.get(`${path}/entries/${said}/request`))).toMatchObject({ status: 404, type: 'no-request' })
  })
})

test('a request that cannot be rebuilt, or differs, is reported as not verified', async () => {
  const models: (Model | Error | undefined)[] = [scriptedModel(), undefined, new Error('no key')]
  const openModel = async (): Promise<Model | undefined> => {
    const model = models.shift()
    if (model instanceof Error) throw model
    return model
  }
  const model = hashingModel(script().text('answer'))
  const { api, path, id } = await told({ agent: { models: onlyModel(model) }, parts: { openModel } })
  const at = `${path}/entries/${(await api.sessions.get(id)).session.leafId}/request`
  const different = expect.stringContaining('different hash') as string
  const unknown = expect.stringContaining('cannot open the model') as string
  expect(await body(api.get(at))).toMatchObject({ verified: false, reason: different })
  expect(await body(api.get(at))).toMatchObject({ verified: false, reason: unknown })
  expect(await body(api.get(at))).toMatchObject({ verified: false, reason: unknown })
})

describe('the recording', () => {
  test('is streamed at its recorded pace, times the speed, from any position', async () => {
    const clock = new FakeClock()
    const api = start({ clock, store: memoryStore({ now: () => new Date(clock.now()) }) })
    const path = await api.session()
    await using session = await api.store.open(path.slice(14))
    for (const word of ['one', 'two', 'three']) {
      clock.advance(4000)
      await session.appendMessage('user', [text(word)])
    }
    const headers = { accept: 'application/x-ndjson' }
    const response = await api.get(`${path}/player?speed=2&index=1&types=user_prompt`, { headers })
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const next = async (): Promise<string> => {
      const { value } = await reader.read()
      return (JSON.parse(Buffer.from(value ?? []).toString()) as { text: string }).text
    }
    expect(await next()).toBe('one')
    const second = next()
    while (!clock.waits.includes(2000)) await new Promise(setImmediate)
    clock.advance(2000)
    expect(await second).toBe('two')
    const unheard = reader.read()
    while (!clock.waits.includes(2000)) await new Promise(setImmediate)
    await api.close()
    expect(await unheard).toMatchObject({ done: true })
    expect((await api.get(`${path}/player?speed=0`, { headers })).status).toBe(422)
  })

  test('is played in pages, from an index, a line or a time, for all or some types', async () => {
    const { api, path } = await told({ script: script().reasoning('hm').text('answer') })
    const all = await body<{ events: { type: string; seq: number; timestamp: string }[]; length: number }>(
      api.get(`${path}/player`),
    )
    expect(all.events.map(({ type }) => type)).toEqual([
      'session_start',
      'user_prompt',
      'agent_thought',
      'agent_message',
    ])
    expect(all).toMatchObject({ length: 4, position: 4 })
    expect(await body(api.get(`${path}/player?index=1&limit=1`))).toMatchObject({
      events: [{ type: 'user_prompt', text: 'hello there', line_id: expect.any(String) }],
      position: 2,
    })
    expect(await body(api.get(`${path}/player?types=agent_message,agent_thought&limit=1`))).toMatchObject({
      events: [{ type: 'agent_thought' }],
      position: 3,
    })
    expect(await body(api.get(`${path}/player?seq=${all.events[2]?.seq}`))).toMatchObject({ events: [{}, {}] })
    expect(await body(api.get(`${path}/player?time=2999-01-01T00:00:00Z`))).toMatchObject({ events: [] })
    expect((await api.get(`${path}/player?types=odd`)).status).toBe(422)
    expect((await api.get(`${path}/player?time=now`)).status).toBe(422)
  })

  test('is searched in pages and with filters, and the words are marked', async () => {
    const api = start({ otherwise: () => script().text('Another peculiar answer') })
    const paths = [await api.session({ cwd: '/' }), await api.session({ cwd: '/tmp' })]
    for (const path of [...paths, ...paths]) {
      await api.post(`${path}/prompt`, { text: 'A peculiar question' })
      await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    }
    interface Found {
      hits: {
        session_id: string
        entry_id: string
        role: string
        snippet: string
        timestamp: string
        matches: { start: number; end: number }[]
      }[]
      cursor?: string
    }
    const search = (query: Record<string, string>): Promise<Found> =>
      body<Found>(api.get(`/api/search?${new URLSearchParams({ q: 'PECULIAR', ...query }).toString()}`))
    const all = await search({})
    expect(all.hits).toHaveLength(8)
    expect(all.cursor).toBeUndefined()
    const paged: Found['hits'] = []
    for (let cursor: string | undefined = ''; cursor !== undefined;) {
      const page: Found = await search({ limit: '3', ...(cursor !== '' && { cursor }) })
      paged.push(...page.hits)
      cursor = page.cursor
    }
    expect(paged).toEqual(all.hits)
    expect(all.hits.map(({ snippet, matches: [match] }) => snippet.slice(match?.start, match?.end))).toEqual(
      Array.from({ length: 8 }, () => 'peculiar'),
    )
    const entries = async (query: Record<string, string>): Promise<string[]> =>
      (await search(query)).hits.map(({ entry_id: id }) => id)
    const which = (wanted: (hit: Found['hits'][number]) => boolean): string[] =>
      all.hits.filter(wanted).map(({ entry_id: id }) => id)
    const id = paths[1]?.split('/').at(-1) ?? ''
    expect(await entries({ role: 'user' })).toEqual(which(({ role }) => role === 'user'))
    expect(await entries({ role: 'user, assistant' })).toHaveLength(8)
    expect(await entries({ session_id: id })).toEqual(which((hit) => hit.session_id === id))
    expect(await entries({ cwd: '/tmp' })).toEqual(which((hit) => hit.session_id === id))
    expect(await entries({ cwd: '/', session_id: id })).toEqual([])
    const since = all.hits[3]?.timestamp ?? ''
    expect(await entries({ since })).toEqual(which(({ timestamp }) => timestamp >= since))
    expect(await entries({ until: since })).toEqual(which(({ timestamp }) => timestamp < since))
    expect(await search({ cursor: 'nonsense' })).toMatchObject({ status: 422, type: 'invalid-cursor' })
    expect(await search({ since: 'yesterday' })).toMatchObject({ status: 422, type: 'invalid-request' })
  })

  test('is searched, and exported with its blobs', async () => {
    const { api, path, id } = await told({ script: script().text('a peculiar answer') })
    expect(await body(api.get('/api/search?q=peculiar'))).toMatchObject({
      hits: [{ session_id: id, role: 'assistant', snippet: expect.stringContaining('peculiar') }],
    })
    expect(await body(api.get('/api/search?q=nowhere'))).toEqual({ hits: [] })
    expect((await api.get('/api/search')).status).toBe(422)
    expect(await body(api.get('/api/search?q=peculiar&place=archive'))).toEqual({ hits: [] })
    expect((await api.get('/api/search?q=peculiar&place=elsewhere')).status).toBe(422)
    const exported = await api.get(`${path}/export`)
    expect(exported.headers.get('content-disposition')).toBe(`attachment; filename="${id}.pack"`)
    const copy = await api.store.unpack(
      (async function* () {
        yield new Uint8Array(await exported.arrayBuffer())
      })(),
    )
    expect(copy.info.messageCount).toBe(2)
    await copy.close()
    expect((await api.get('/api/sessions/none/export')).status).toBe(404)
  })
})

describe('a question', () => {
  test('is answered by the first client, and the others learn which one', async () => {
    const api = start({
      script: script()
        .toolCall('c1', 'act', { deep: { keptAsItIs: 1 } })
        .step()
        .text('done'),
      agent: { gate: askingGate },
    })
    const path = await api.session({ prompt: 'go' })
    const list = await vi.waitFor(async () => {
      const found = await body<{ permissions: { request_id: string }[] }>(api.get(`${path}/permissions`))
      expect(found.permissions).toHaveLength(1)
      return found
    })
    expect(list.permissions).toMatchObject([
      { tool: 'act', input: { deep: { keptAsItIs: 1 } }, options: [{ option_id: 'yes' }, { option_id: 'no' }] },
    ])
    const at = `${path}/permissions/${list.permissions[0]?.request_id}`
    expect(await body(api.post(at, { option_id: 'perhaps' }))).toMatchObject({ status: 422, type: 'unknown-option' })
    expect(await body(api.post(at, { option_id: 'yes' }, { role: 'queue' }))).toMatchObject({ status: 403 })
    const headers = { 'x-client-id': 'phone', 'idempotency-key': 'answer-1' }
    expect((await api.post(at, { option_id: 'yes' }, { headers })).status).toBe(200)
    expect((await api.post(at, { option_id: 'yes' }, { headers })).status).toBe(200)
    expect(await body(api.post(at, { option_id: 'no' }))).toMatchObject({
      status: 409,
      type: 'already-resolved',
      option_id: 'yes',
      client: 'phone',
      seq: expect.any(Number),
    })
    expect(await body(api.post(`${path}/permissions/none`, { option_id: 'no' }))).toMatchObject({ status: 404 })
    await vi.waitFor(async () => expect(await body(api.get(path))).toMatchObject({ status: 'idle' }))
    expect(await body(api.get(`${path}/permissions`))).toEqual({ permissions: [] })
  })
})

describe('an image', () => {
  const png = new Uint8Array(Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1'))
  const send = (api: TestApi, path: string, bytes: Uint8Array): Promise<Response> =>
    api.request(`${path}/images`, { method: 'POST', body: bytes, headers: { 'content-type': 'image/gif' } })

  test('is typed by its bytes, stored by its content, and returned unchanged', async () => {
    const api = start()
    const path = await api.session()
    const stored = await send(api, path, png)
    const { id, ...rest } = await body<{ id: string }>(stored)
    expect([stored.status, rest]).toEqual([201, { size: 12, media_type: 'image/png' }])
    const back = await api.get(`${path}/blobs/${id}`)
    expect(back.headers.get('content-type')).toBe('image/png')
    expect(back.headers.get('x-content-type-options')).toBe('nosniff')
    expect(new Uint8Array(await back.arrayBuffer())).toEqual(png)
    expect((await api.get(`${path}/blobs/${'0'.repeat(64)}`)).status).toBe(404)
    expect((await api.get(`${path}/blobs/short`)).status).toBe(422)
  })

  test('that the session does not have is rejected before anything is written', async () => {
    const api = start({ otherwise: () => script().text('Seen.') })
    const path = await api.session()
    const { id } = await body<{ id: string }>(send(api, path, png))
    const { id: queued } = await body<{ id: string }>(
      api.post(`${path}/queue`, { message: 'later' }, { role: 'queue' }),
    )
    const before = await body(api.get(`${path}/events`))
    const unknown = { image_ids: [id, '0'.repeat(64)] }
    for (const refused of [
      api.post(`${path}/prompt`, { text: 'look', ...unknown }),
      api.post(`${path}/queue`, { message: 'look', ...unknown }),
      api.patch(`${path}/queue/${queued}`, unknown),
    ]) {
      expect(await body(refused)).toMatchObject({ status: 422, type: 'unknown-image', image_id: '0'.repeat(64) })
    }
    expect(await body(api.get(`${path}/events`))).toEqual(before)
    expect((await api.patch(`${path}/queue/${queued}`, { image_ids: [id] })).status).toBe(200)
  })

  test('does not let a later message overtake it', async () => {
    const api = start({ otherwise: () => script().text('Seen.') })
    const path = await api.session()
    const { id } = await body<{ id: string }>(send(api, path, png))
    const queue = (message: string, imageIds: string[]): Promise<Response> =>
      api.post(`${path}/queue`, { message, image_ids: imageIds }, { role: 'queue' })
    await Promise.all([queue('first', [id]), queue('second', []), queue('third', [id]), queue('fourth', [])])
    const { messages } = await body<{ messages: { message: string }[] }>(api.get(`${path}/queue`))
    expect(messages.map(({ message }) => message)).toEqual(['first', 'second', 'third', 'fourth'])
  })

  test('that is not an image, or too large, is rejected', async () => {
    const api = start()
    const path = await api.session()
    const page = new Uint8Array(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg">'))
    expect(await body(send(api, path, page))).toMatchObject({ status: 415, type: 'no-image' })
    const large = new Uint8Array(20 * 1024 * 1024 + 1)
    large.set(png)
    expect(await body(send(api, path, large))).toMatchObject({ status: 413, type: 'too-large' })
  })
})
