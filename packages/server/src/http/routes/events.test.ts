import { serve, type ServerType } from '@hono/node-server'
import { FakeClock, script } from '@tapetree/agent/testing'
import { nodeFilePort, openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

interface Event {
  id?: string
  event: string
  data: Record<string, unknown>
}

/** Reads an event stream one event at a time. */
class Reader {
  readonly seen: Event[] = []
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #text = ''

  constructor(response: Response) {
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    this.#reader = (response.body as ReadableStream<Uint8Array>).getReader()
  }

  /** Undefined at the end. */
  async next(): Promise<Event | undefined> {
    while (!this.#text.includes('\n\n')) {
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += Buffer.from(value).toString()
    }
    const end = this.#text.indexOf('\n\n')
    const fields = new Map(
      this.#text
        .slice(0, end)
        .split('\n')
        .map((line) => [line.split(': ')[0], line.slice(line.indexOf(': ') + 2)]),
    )
    this.#text = this.#text.slice(end + 2)
    const id = fields.get('id')
    const event: Event = {
      ...(id !== undefined && { id }),
      event: fields.get('event') ?? 'message',
      data: JSON.parse(fields.get('data') ?? 'null') as Record<string, unknown>,
    }
    this.seen.push(event)
    return event
  }

  async until(isWanted: (event: Event) => boolean): Promise<Event> {
    for (let event = await this.next(); event; event = await this.next()) if (isWanted(event)) return event
    throw new Error('The stream has ended.')
  }

  cancel(): Promise<void> {
    return this.#reader.cancel()
  }
}

const isLine = (type: string) => (event: Event) => event.event === 'message' && event.data['type'] === type

async function listen(api: TestApi): Promise<string> {
  const server: ServerType = await new Promise((resolve) => {
    const made = serve({ fetch: api.routes.app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(made))
  })
  cleanUps.push(() => new Promise((resolve) => server.close(() => resolve(undefined))))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a page of events', () => {
  test('has the lines of the log byte for byte, after one or before one', async () => {
    const api = start({ script: script().text('hello') })
    const path = await api.session({ prompt: 'hi' })
    const live = await api.sessions.get(path.slice(14))
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    const stored: string[] = []
    for await (const line of live.session.lines()) if (line.type === 'line') stored.push(line.text)
    const whole = await (await api.get(`${path}/events`)).text()
    expect(whole).toBe(`{"events":[${stored.join(',')}],"head":${JSON.stringify(live.session.head)}}`)
    const seqs = async (query: string): Promise<number[]> =>
      (await body<{ events: { seq: number }[] }>(api.get(`${path}/events?${query}`))).events.map(({ seq }) => seq)
    expect(await seqs('after=2&limit=2')).toEqual([3, 4])
    expect(await seqs('before=4&limit=2')).toEqual([2, 3])
    expect(await seqs(`after=${live.session.head.seq}`)).toEqual([])
    const ndjson = await api.get(`${path}/events`, { headers: { accept: 'application/x-ndjson' } })
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson')
    expect(await ndjson.text()).toBe(stored.map((line) => `${line}\n`).join(''))
    const some = await api.get(`${path}/events?after=1&limit=2`, { headers: { accept: 'application/x-ndjson' } })
    expect(await some.text()).toBe(
      stored
        .slice(1, 3)
        .map((line) => `${line}\n`)
        .join(''),
    )
    expect((await api.get(`${path}/events?after=-1`)).status).toBe(422)
  })

  test('waits for the next line, but not longer than requested', async () => {
    const clock = new FakeClock()
    const api = start({ clock })
    const path = await api.session()
    const live = await api.sessions.get(path.slice(14))
    const { seq } = live.session.head
    const waiting = api.get(`${path}/events?after=${seq}&wait=30`)
    expect(await clock.waited()).toBe(30_000)
    await api.patch(path, { name: 'new' })
    const { events } = await body<{ events: { type: string }[] }>(waiting)
    expect(events.length).toBeGreaterThan(0)
    const inVain = api.get(`${path}/events?after=${live.session.head.seq}&wait=20`)
    expect(await clock.skip()).toBe(20_000)
    expect(await body(inVain)).toMatchObject({ events: [] })
  })
})

test('HEAD of the events and of an export leaves no file open', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-head-'))
  cleanUps.push(() => rm(folder, { recursive: true }))
  const real = nodeFilePort()
  const open = new Set<number>()
  const opening = (fd: number): number => {
    open.add(fd)
    return fd
  }
  const close = (fd: number): void => {
    open.delete(fd)
    real.close(fd)
  }
  const openRead = (path: string): number => opening(real.openRead(path))
  const openAppend = (path: string): number => opening(real.openAppend(path))
  const api = start({ store: openFileStore({ folder, port: { ...real, openRead, openAppend, close } }) })
  const path = await api.session()
  await vi.waitFor(() => expect([...open]).toEqual([]))
  const headers = { accept: 'application/x-ndjson' }
  for (const each of [`${path}/events`, `${path}/export`]) {
    expect((await api.request(each, { method: 'HEAD', headers })).status).toBe(200)
  }
  await vi.waitFor(() => expect([...open]).toEqual([]))
})

test('HEAD of a stream of events leaves no client attached', async () => {
  const api = start()
  const path = await api.session()
  expect((await api.request(`${path}/events/stream`, { method: 'HEAD' })).status).toBe(200)
  const live = await api.sessions.get(path.slice(14))
  await vi.waitFor(() => expect(live.connections.size).toBe(0))
})

describe('a stream of events', () => {
  test('starts with a snapshot, sends every line with its cursor, and resumes at a cursor', async () => {
    const api = start({ script: script().text('one').step().text('two') })
    const path = await api.session({ prompt: 'a' })
    const live = await api.sessions.get(path.slice(14))
    await vi.waitFor(() => expect(live.driver.isBusy).toBe(false))
    const url = await listen(api)
    const reader = new Reader(await fetch(`${url}${path}/events/stream`))
    expect(await reader.next()).toMatchObject({
      event: 'attached',
      data: { data: { mode: 'snapshot', reason: 'first' } },
    })
    await api.post(`${path}/prompt`, { text: 'b' })
    const last = await reader.until(isLine('run_end'))
    expect(last.id).toMatch(/^\d+-[0-9a-f]{8}$/)
    expect(reader.seen.map(({ event }) => event)).toContain('state')
    await reader.cancel()
    await vi.waitFor(() => expect(live.connections.size).toBe(0))

    const id = reader.seen.find(isLine('run_start'))?.id ?? ''
    const back = new Reader(await fetch(`${url}${path}/events/stream`, { headers: { 'last-event-id': id } }))
    expect(await back.next()).toMatchObject({ event: 'attached', data: { data: { mode: 'tail' } } })
    const rest = await back.until(isLine('run_end'))
    expect(rest).toEqual(last)
    await back.cancel()
    const wrong = new Reader(await fetch(`${url}${path}/events/stream?after=3-ffffffff`))
    expect(await wrong.next()).toMatchObject({ data: { data: { mode: 'snapshot', reason: 'history_changed' } } })
    await wrong.cancel()
  })

  test('sends a real ping every 15 seconds, and keeps its reader present', async () => {
    const clock = new FakeClock()
    const api = start({ clock })
    const path = await api.session()
    const reader = new Reader(await api.get(`${path}/events/stream?client_id=tab`))
    await reader.next()
    expect(await clock.skip()).toBe(15_000)
    expect(await reader.until(({ event }) => event === 'ping')).toMatchObject({ data: { time: expect.any(String) } })
    await reader.cancel()
  })

  test('ends when the token is revoked, and when the session is gone', async () => {
    const api = start()
    const path = await api.session()
    const first = new Reader(await api.get(`${path}/events/stream`))
    await first.next()
    await api.delete(path)
    await expect(first.until(() => false)).rejects.toThrow('has ended')
    expect(first.seen.at(-1)).toMatchObject({ event: 'gone' })
    const other = await api.session()
    const second = new Reader(await api.get(`${other}/events/stream`))
    await second.next()
    api.revoke()
    await expect(second.until(() => false)).rejects.toThrow('has ended')
    expect((await api.sessions.get(other.slice(14))).connections.size).toBe(0)
  })

  test('ends for a reader that takes nothing for a minute', async () => {
    const clock = new FakeClock()
    const api = start({ clock })
    const path = await api.session()
    const response = await api.get(`${path}/events/stream`)
    const live = await api.sessions.get(path.slice(14))
    expect(live.connections.size).toBe(1)
    for (let ms = 0; ms < 60_000; ms += 15_000) {
      await clock.waited()
      clock.advance(15_000)
    }
    await vi.waitFor(() => expect(live.connections.size).toBe(0))
    await response.body?.cancel()
  })
})

describe('a server', () => {
  test('accepts bodies over a real connection, and counts the bytes of one without a length', async () => {
    const api = start({ script: script().text('one') })
    const url = await listen(api)
    const path = await api.session()
    const headers = { 'content-type': 'application/json' }
    const prompted = await fetch(`${url}${path}/prompt`, { method: 'POST', headers, body: '{"text":"hi"}' })
    expect([prompted.status, await body(prompted)]).toMatchObject([202, { outcome: 'started' }])
    const chunks = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024).fill(0x20)),
    })
    const init = { method: 'POST', headers, body: chunks, duplex: 'half' } as const
    const refused = await fetch(`${url}${path}/prompt`, init).then(
      ({ status }) => status,
      () => 'cut off',
    )
    expect([413, 'cut off']).toContain(refused)
    expect((await fetch(`${url}/api/health`)).status).toBe(200)
  })
})

describe('the feed of the session list', () => {
  test('reports changed and removed sessions', async () => {
    const api = start()
    const url = await listen(api)
    const feed = new Reader(await fetch(`${url}/api/events`))
    expect(await feed.next()).toMatchObject({ event: 'ready' })
    const path = await api.session({ name: 'new' })
    expect(await feed.next()).toMatchObject({
      event: 'session_changed',
      data: { type: 'session_changed', session: { id: path.slice(14), name: 'new' } },
    })
    await api.patch(path, { name: 'newer' })
    expect(await feed.next()).toMatchObject({ data: { session: { name: 'newer' } } })
    await api.delete(path)
    expect(await feed.next()).toMatchObject({ data: { type: 'session_removed', session_id: path.slice(14) } })
    await feed.cancel()
  })
})
