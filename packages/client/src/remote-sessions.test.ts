import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WireSessionFeedEvent, WireSessionSummary } from './protocol/rest.ts'
import type { WakeUps } from './reconnect.ts'
import { RemoteSessions, type RemoteSessionsOptions } from './remote-sessions.ts'
import { SkippingClock } from './testing/skipping-clock.ts'
import { webServer } from './testing/web-server.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function session(id: string, minute: number, more: Partial<WireSessionSummary> = {}): WireSessionSummary {
  const modified = new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString()
  return {
    id,
    name: id,
    created: modified,
    modified,
    message_count: 1,
    status: 'idle',
    queue_length: 0,
    cost: 0,
    damaged: false,
    ...more,
  }
}

/** A server with a list and a feed. */
class ListServer {
  sessions: WireSessionSummary[] = []
  feeds: ServerResponse[] = []
  /** Events sent while the list is being read. */
  whileListing: WireSessionFeedEvent[] = []
  refuse: number | undefined
  /** Refuses as a proxy does, without a problem document. */
  isProxy = false
  /** What becomes of a check whether the server is there. */
  checkUp: 'answers' | 'is cut' | 'is silent' = 'answers'
  checks = 0
  url = ''

  static async open(): Promise<ListServer> {
    const server = new ListServer()
    const web = await webServer((request, response) => server.#answer(request.url ?? '', response))
    server.url = web.url
    cleanUps.push(() => web.close())
    return server
  }

  tell(event: WireSessionFeedEvent | string): void {
    const text = typeof event === 'string' ? event : `data: ${JSON.stringify(event)}\n\n`
    for (const feed of this.feeds) feed.write(text)
  }

  cut(): void {
    for (const feed of this.feeds.splice(0)) feed.destroy()
  }

  #answer(url: string, response: ServerResponse): void {
    if (this.refuse !== undefined) {
      const problem = { type: 'refused', title: 'Refused', status: this.refuse }
      response.writeHead(this.refuse).end(this.isProxy ? '' : JSON.stringify(problem))
    } else if (url.startsWith('/api/version')) {
      this.checks++
      if (this.checkUp === 'answers') response.writeHead(200).end('{}')
      else if (this.checkUp === 'is cut') response.destroy()
    } else if (url.startsWith('/api/events')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': here\n\n')
      this.feeds.push(response)
    } else {
      const { searchParams } = new URL(url, 'http://server')
      const start = Number(searchParams.get('cursor') ?? 0)
      const end = start + Number(searchParams.get('limit') ?? 100)
      for (const event of this.whileListing.splice(0)) this.tell(event)
      const cursor = end < this.sessions.length ? { cursor: String(end) } : {}
      response.writeHead(200).end(JSON.stringify({ sessions: this.sessions.slice(start, end), ...cursor }))
    }
  }
}

function follow(server: ListServer, options: Partial<RemoteSessionsOptions> = {}): RemoteSessions {
  const sessions = RemoteSessions.open({ baseUrl: server.url, random: () => 0, ...options })
  cleanUps.push(() => sessions.close())
  return sessions
}

/** Wakes whatever follows with its `wakeUps`. */
function alarm(): { wake: () => void; wakeUps: WakeUps } {
  let ring = (): void => undefined
  const wakeUps: WakeUps = (wake) => {
    ring = wake
    return () => undefined
  }
  return { wake: () => ring(), wakeUps }
}

async function until(sessions: RemoteSessions, holds: () => boolean): Promise<void> {
  if (holds()) return
  await new Promise<void>((resolve) => {
    const stop = sessions.subscribe(() => {
      if (!holds()) return
      stop()
      resolve()
    })
  })
}

const ids = ({ sessions }: RemoteSessions): string[] => sessions.map(({ id }) => id)
const isAttached = ({ status }: RemoteSessions): boolean => status.type === 'attached'

describe('the list of sessions', () => {
  test('is kept up to date by the feed, most recent first', async () => {
    const server = await ListServer.open()
    server.sessions = [session('a', 2), session('b', 1)]
    const sessions = follow(server)
    await until(sessions, () => isAttached(sessions))
    server.tell('event: ping\ndata: {}\n\n')
    server.tell({ type: 'session_changed', session: session('b', 3, { status: 'running' }) })
    server.tell({ type: 'session_changed', session: session('c', 4) })
    server.tell({ type: 'session_removed', session_id: 'a' })
    await until(sessions, () => ids(sessions).join() === 'c,b')
    expect(sessions.sessions[1]?.status).toBe('running')
  })

  test('notifies every listener, even if one throws', async () => {
    const uncaught: unknown[] = []
    const server = await ListServer.open()
    server.sessions = [session('a', 1)]
    const sessions = follow(server)
    await until(sessions, () => isAttached(sessions))
    const inTime = queueMicrotask
    const spied = vi
      .spyOn(globalThis, 'queueMicrotask')
      .mockImplementation((work) =>
        inTime(() => void Promise.try(work).catch((error: unknown) => uncaught.push(error))),
      )
    const stop = sessions.subscribe(() => {
      throw new Error('broken listener')
    })
    server.tell({ type: 'session_changed', session: session('b', 3) })
    await until(sessions, () => ids(sessions).join() === 'b,a')
    stop()
    spied.mockRestore()
    expect(isAttached(sessions)).toBe(true)
    expect(uncaught).toContainEqual(new Error('broken listener'))
  })

  test('prefers events of the feed that arrive while it is read', async () => {
    const server = await ListServer.open()
    server.sessions = [session('a', 1)]
    server.whileListing = [{ type: 'session_changed', session: session('a', 2, { name: 'newer' }) }]
    const sessions = follow(server)
    await until(sessions, () => isAttached(sessions) && sessions.sessions[0]?.name === 'newer')
  })

  test('is read again after a cut', async () => {
    const server = await ListServer.open()
    server.sessions = [session('a', 1)]
    const sessions = follow(server)
    await until(sessions, () => isAttached(sessions))
    server.sessions = [session('b', 2)]
    server.cut()
    await until(sessions, () => ids(sessions).join() === 'b')
  })

  test('is read again if the feed goes silent', async () => {
    const clock = new SkippingClock()
    const server = await ListServer.open()
    const sessions = follow(server, { clock, random: () => 1 })
    await until(sessions, () => isAttached(sessions))
    server.sessions = [session('b', 2)]
    await clock.skip(20_000)
    await until(sessions, () => sessions.status.type === 'waiting')
    await clock.skip(500)
    await until(sessions, () => ids(sessions).join() === 'b')
  })

  test('is read again when the network goes away without ending the feed', async () => {
    const clock = new SkippingClock()
    const { wake, wakeUps } = alarm()
    const server = await ListServer.open()
    const sessions = follow(server, { clock, wakeUps, random: () => 1 })
    await until(sessions, () => isAttached(sessions))
    server.sessions = [session('b', 2)]
    server.checkUp = 'is cut'
    wake()
    await until(sessions, () => sessions.status.type === 'waiting')
    wake()
    await until(sessions, () => ids(sessions).join() === 'b')
  })

  test('is read again when the server does not answer soon after the page wakes up', async () => {
    const clock = new SkippingClock()
    const { wake, wakeUps } = alarm()
    const server = await ListServer.open()
    const sessions = follow(server, { clock, wakeUps, random: () => 1 })
    await until(sessions, () => isAttached(sessions))
    server.checkUp = 'is silent'
    wake()
    await clock.skip(5000)
    await until(sessions, () => sessions.status.type === 'waiting')
    wake()
    await until(sessions, () => isAttached(sessions))
  })

  test('keeps its feed if the server answers when the page wakes up', async () => {
    const { wake, wakeUps } = alarm()
    const server = await ListServer.open()
    const sessions = follow(server, { wakeUps })
    await until(sessions, () => isAttached(sessions))
    const statuses: string[] = []
    sessions.subscribe(() => statuses.push(sessions.status.type))
    for (let times = 0; times < 3; times++) wake()
    await expect.poll(() => server.checks).toBe(1)
    server.tell({ type: 'session_changed', session: session('c', 4) })
    await until(sessions, () => ids(sessions).join() === 'c')
    expect([server.feeds.length, statuses]).toEqual([1, ['attached']])
  })

  test('is read page by page', async () => {
    const server = await ListServer.open()
    server.sessions = [session('a', 3), session('b', 2), session('c', 1)]
    const sessions = follow(server, { limit: 2 })
    await until(sessions, () => isAttached(sessions))
    expect([ids(sessions), sessions.hasMore]).toEqual([['a', 'b'], true])
    await sessions.loadMore()
    expect([ids(sessions), sessions.hasMore]).toEqual([['a', 'b', 'c'], false])
  })

  test('contains only matching sessions', async () => {
    const server = await ListServer.open()
    const sessions = follow(server, { cwd: '/mine' })
    await until(sessions, () => isAttached(sessions))
    server.tell({ type: 'session_changed', session: session('other', 1, { cwd: '/other' }) })
    server.tell({ type: 'session_changed', session: session('mine', 1, { cwd: '/mine' }) })
    await until(sessions, () => ids(sessions).length > 0)
    expect(ids(sessions)).toEqual(['mine'])
  })

  test('stops if access is denied, and reconnects otherwise', async () => {
    const server = await ListServer.open()
    server.refuse = 500
    const sessions = follow(server)
    await until(sessions, () => sessions.status.type === 'waiting')
    Object.assign(server, { refuse: 401, isProxy: true })
    await until(sessions, () => sessions.status.type === 'connecting')
    await until(sessions, () => sessions.status.type === 'waiting')
    server.isProxy = false
    await until(sessions, () => sessions.status.type === 'closed')
    expect(sessions.status).toEqual({ type: 'closed', reason: 'unauthorized' })
  })
})
