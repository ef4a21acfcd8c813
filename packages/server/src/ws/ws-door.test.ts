import { closeCodes, limits, type ServerFrame } from '@tapetree/client/protocol'
import { FakeClock, script } from '@tapetree/agent/testing'
import { memoryStore, type CreateOptions } from '@tapetree/session'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket, type RawData } from 'ws'
import { TestServer } from '../testing/running-server.ts'
import { scriptedSessions } from '../testing/scripted-sessions.ts'
import { LiveSessions } from '../live/live-sessions.ts'
import { RequestProblem } from '../util/problem-error.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function start(options?: Parameters<typeof TestServer.start>[0]): Promise<{ server: TestServer; id: string }> {
  const server = await TestServer.start(options)
  cleanUps.push(() => server.close())
  return { server, id: await server.sessions.create({ cwd: '/' }) }
}

type Heard = ServerFrame | { type: string; seq: number }

/** A client that records its frames. */
class Ear {
  readonly socket: WebSocket
  readonly heard: Heard[] = []
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #waiting = new Set<() => void>()

  constructor(socket: WebSocket) {
    this.socket = socket
    cleanUps.push(() => socket.terminate())
    socket.on('error', () => undefined)
    socket.on('message', (data: RawData) => {
      this.heard.push(JSON.parse((data as Buffer).toString()) as Heard)
      for (const look of this.#waiting) look()
    })
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }))
    })
  }

  static async attached(socket: WebSocket, client = 'ear'): Promise<Ear> {
    const ear = new Ear(socket)
    await once(socket, 'open')
    ear.say('attach', { client: { id: client } })
    await ear.hears('attached')
    return ear
  }

  say(type: string, data: unknown): void {
    this.socket.send(JSON.stringify({ type, data }))
  }

  hears<Type extends ServerFrame['type']>(
    type: Type,
    is: (frame: Extract<ServerFrame, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<ServerFrame, { type: Type }>> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.heard.find((frame) => frame.type === type && is(frame as never))
        if (!found) return
        this.#waiting.delete(look)
        resolve(found as never)
      }
      this.#waiting.add(look)
      look()
    })
  }

  async command(id: string, op: string, args: unknown = {}): Promise<unknown> {
    this.say('cmd', { id, op, args })
    return (await this.hears('ack', ({ data }) => data.id === id)).data
  }
}

describe('a WebSocket', () => {
  test('watches a session and drives it', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('drive')))
    expect(ear.socket.protocol).toBe('tapetree.v1')
    expect(ear.heard[0]).toMatchObject({
      type: 'attached',
      data: { session_id: id, mode: 'snapshot', reason: 'first' },
    })
    expect(await ear.command('one', 'prompt', { text: 'hi' })).toMatchObject({
      ok: true,
      result: { outcome: 'started' },
    })
    expect(await ear.command('one', 'prompt', { text: 'hi' })).toMatchObject({ ok: true })
    await vi.waitFor(() => expect(ear.heard.filter(({ type }) => type === 'run_end')).toHaveLength(1))
    ear.say('ping', { n: 7 })
    const live = await server.sessions.get(id)
    expect((await ear.hears('pong')).data).toMatchObject({ n: 7, head: live.session.head })
    ear.say('presence', { visibility: 'hidden', typing: true })
    await ear.hears('state', ({ data }) => data.key === 'presence' && JSON.stringify(data.value).includes('"hidden"'))
    expect(await ear.command('bad', 'prompt', { txt: 'hi' })).toMatchObject({ ok: false, error: { status: 422 } })
  })

  test('ignores frames of unknown types, before and after it attaches', async () => {
    const { server, id } = await start()
    const ear = new Ear(server.dial(id, await server.token('drive')))
    await once(ear.socket, 'open')
    ear.say('dance', {})
    ear.say('attach', { client: { id: 'ear' } })
    ear.say('dance', { partner: 'you' })
    await ear.hears('attached')
    ear.say('sing', 'not even an object')
    ear.say('ping', { n: 1 })
    expect((await ear.hears('pong')).data.n).toBe(1)
  })

  test('resumes at its cursor, and replaces its own older connection', async () => {
    const { server, id } = await start()
    const token = await server.token('drive')
    const first = await Ear.attached(server.dial(id, token), 'tab')
    const head = (await first.hears('attached')).data.head
    const second = new Ear(server.dial(id, token))
    await once(second.socket, 'open')
    second.say('attach', { client: { id: 'tab' }, after: head })
    expect((await second.hears('attached')).data).toMatchObject({ mode: 'tail', from: head.seq + 1 })
    expect(await first.closed).toMatchObject({ code: closeCodes.replaced })
    const live = await server.sessions.get(id)
    expect([...live.connections].map(({ client }) => client.id)).toEqual(['tab'])
  })

  test('performs nothing more that comes by the connection that it has replaced', async () => {
    const { server, id } = await start()
    const token = await server.token('drive')
    const first = await Ear.attached(server.dial(id, token))
    // It does not see that it was closed.
    first.socket.pause()
    const second = await Ear.attached(server.dial(id, token))
    first.say('cmd', { id: 'late', op: 'rename', args: { name: 'Late' } })
    first.socket.resume()
    await first.closed
    expect(await second.command('name', 'rename', { name: 'In time' })).toMatchObject({ ok: true })
    const names = second.heard.filter((frame) => 'seq' in frame && frame.type === 'session_info')
    expect(names).toMatchObject([{ session_info: { name: 'In time' } }])
  })

  test('does not replace a client of another token', async () => {
    const { server, id } = await start()
    const first = await Ear.attached(server.dial(id, await server.token('drive')), 'tab')
    const thief = new Ear(server.dial(id, await server.token('view')))
    await once(thief.socket, 'open')
    thief.say('attach', { client: { id: 'tab' } })
    expect(await thief.closed).toMatchObject({ code: closeCodes.badFrame })
    first.say('ping', { n: 1 })
    await first.hears('pong')
  })

  test('handles frames sent right after its attach, in order', async () => {
    const { server, id } = await start()
    const ear = new Ear(server.dial(id, await server.token('drive')))
    await once(ear.socket, 'open')
    ear.say('attach', { client: { id: 'hasty' } })
    for (let n = 0; n < 5; n++) ear.say('ping', { n })
    await ear.hears('pong', ({ data }) => data.n === 4)
    const types = ear.heard.flatMap((frame) => (frame.type === 'pong' && 'data' in frame ? [frame.data] : []))
    expect(types).toMatchObject([0, 1, 2, 3, 4].map((n) => ({ n })))
    expect(ear.heard[0]).toMatchObject({ type: 'attached' })
  })

  test('reads no more than the most commands under way before it is attached', async () => {
    const sessions = scriptedSessions()
    const opened = Promise.withResolvers<void>()
    const get = sessions.get.bind(sessions)
    sessions.get = async (sessionId) => {
      await opened.promise
      return get(sessionId)
    }
    const { server, id } = await start(() => ({ sessions }))
    const ear = new Ear(server.dial(id, await server.token('drive')))
    await once(ear.socket, 'open')
    ear.say('attach', { client: { id: 'hasty' } })
    const paused = vi.spyOn(WebSocket.prototype, 'pause')
    cleanUps.push(() => paused.mockRestore())
    for (let n = 0; n < 100; n++) ear.say('cmd', { id: `c-${n}`, op: 'rename', args: { name: 'x' } })
    await vi.waitFor(() => expect(paused).toHaveBeenCalled())
    opened.resolve()
    await vi.waitFor(() => expect(ear.heard.filter(({ type }) => type === 'ack')).toHaveLength(100))
  })

  test('is admitted by cookie from our own page, and over the Unix socket without credentials', async () => {
    const { server, id } = await start((folder) => ({ unixSocket: join(folder, 'door') }))
    const { url, address } = server.server
    const cookie = `tapetree-${address.port}=${await server.token('view')}`
    const page = new WebSocket(`${url}/api/sessions/${id}/ws`, ['tapetree.v1'], { headers: { cookie, origin: url } })
    await Ear.attached(page, 'page')
    const local = `ws+unix:${join(server.folder, 'door')}:/api/sessions/${id}/ws`
    const terminal = await Ear.attached(new WebSocket(local), 'terminal')
    expect(await terminal.command('c', 'rename', { name: 'x' })).toMatchObject({ ok: true })
  })
})

describe('a command', () => {
  test('needs the role of its operation', async () => {
    const { server, id } = await start()
    const viewer = await Ear.attached(server.dial(id, await server.token('view')), 'viewer')
    const queuer = await Ear.attached(server.dial(id, await server.token('queue')), 'queuer')
    const live = await server.sessions.get(id)
    const { head } = live.session
    for (const op of ['prompt', 'queue.add', 'bash', 'permission.answer', 'cancel', 'rename']) {
      expect(await viewer.command(`v-${op}`, op)).toMatchObject({
        ok: false,
        error: { status: 403, type: 'role-too-small' },
      })
    }
    expect(await queuer.command('q-1', 'bash', { command: 'true' })).toMatchObject({ error: { status: 403 } })
    expect(live.session.head).toEqual(head)
    expect(await queuer.command('q-2', 'rename', { name: 'mine' })).toMatchObject({ ok: true })
  })

  test('that fails unexpectedly is answered, and the server continues', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('drive')))
    const live = await server.sessions.get(id)
    vi.spyOn(live, 'perform').mockRejectedValueOnce(new Error('an unexpected error'))
    expect(await ear.command('one', 'rename', { name: 'x' })).toMatchObject({ ok: false, error: { status: 500 } })
    expect(await ear.command('two', 'rename', { name: 'x' })).toMatchObject({ ok: true })
  })
})

describe('a WebSocket is rejected', () => {
  test('without a valid token, by close frame for our protocol and by status otherwise', async () => {
    const { server, id } = await start(() => ({ failures: { max: 2 } }))
    const dial = (token: string, path = id): Promise<{ code: number }> => new Ear(server.dial(path, token)).closed
    expect(await dial('wrong')).toMatchObject({ code: closeCodes.auth })
    const url = `${server.server.url}/api/sessions/${id}/ws`
    const plain = new WebSocket(url, { headers: { authorization: 'Bearer wrong' } })
    expect(String((await once(plain, 'error'))[0])).toContain('401')
    expect(await dial('wrong')).toMatchObject({ code: closeCodes.rate })
    const good = await server.token('view')
    await Ear.attached(server.dial(id, good))
    expect(await dial(good, 'no.id')).toMatchObject({ code: closeCodes.gone })
    expect(String((await once(new WebSocket(url), 'error'))[0])).toContain('401')
  })

  test('from a foreign page or under a foreign host, whatever its credentials', async () => {
    const { server, id } = await start()
    const token = await server.token('drive')
    const { url } = server.server
    const status = async (headers: Record<string, string>): Promise<string> =>
      String((await once(server.dial(id, token, headers), 'error'))[0])
    for (const origin of ['null', 'http://evil.example', `${url}.evil.example`, 'http://127.0.0.1:1'])
      expect(await status({ origin })).toContain('403')
    expect(await status({ host: 'evil.example' })).toContain('421')
    const cookie = `tapetree-${server.server.address.port}=${token}`
    const bare = new WebSocket(`${url}/api/sessions/${id}/ws`, ['tapetree.v1'], { headers: { cookie } })
    expect(String((await once(bare, 'error'))[0])).toContain('403')
  })

  test('if the session does not exist, or belongs to another tenant', async () => {
    const other = scriptedSessions()
    const { server, id } = await start(() => {
      const sessions = scriptedSessions()
      return {
        sessions,
        tenants: new Map<string, LiveSessions>([
          ['default', sessions],
          ['other', other],
        ]),
      }
    })
    for (const [sessionId, token] of [
      ['none', await server.token('drive')],
      [id, await server.token('drive', 'other')],
    ] as const) {
      const ear = new Ear(server.dial(sessionId, token))
      await once(ear.socket, 'open')
      ear.say('attach', { client: { id: 'x' } })
      expect(await ear.closed).toMatchObject({ code: closeCodes.gone })
      expect(ear.heard).toMatchObject([{ type: 'gone' }])
    }
  })

  test('for a time only, if the folder of the session does not exist', async () => {
    const missing = new RequestProblem(404, 'folder-not-found', 'The folder does not exist.')
    const { server, id } = await start(() => {
      const store = memoryStore()
      const create = async (options: CreateOptions): Promise<string> => (await store.create(options)).id
      return { sessions: new LiveSessions({ store, create, openDriver: () => Promise.reject(missing) }) }
    })
    const ear = new Ear(server.dial(id, await server.token('drive')))
    await once(ear.socket, 'open')
    ear.say('attach', { client: { id: 'x' } })
    expect(await ear.closed).toMatchObject({ code: closeCodes.restart })
    expect(ear.heard).toMatchObject([{ type: 'bye', data: { reason: 'Folder not found' } }])
  })

  test('that is another upgrade, or at another path', async () => {
    const { server } = await start()
    const { address } = server.server
    const raw = async (text: string): Promise<string> => {
      const socket = connect(address.port, '127.0.0.1')
      socket.end(text)
      const chunks: Buffer[] = await socket.toArray()
      return Buffer.concat(chunks).toString().split('\r\n', 1).join('')
    }
    const upgrade = (path: string, to: string): string =>
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${to}\r\n\r\n`
    expect(await raw(upgrade('/api/health', 'websocket'))).toContain('404')
    expect(await raw(upgrade('/api/caller', 'h2c'))).toContain('401')
  })
})

describe('a WebSocket is closed', () => {
  async function open(options?: Parameters<typeof start>[0]): Promise<{ ear: Ear; server: TestServer; id: string }> {
    const { server, id } = await start(options)
    const ear = new Ear(server.dial(id, await server.token('drive')))
    await once(ear.socket, 'open')
    return { ear, server, id }
  }

  test.each([
    ['no JSON', 'hello'],
    ['no object', '["attach"]'],
    ['no type', '{"data":{}}'],
    ['a type that is none', '{"type":1,"data":{}}'],
    ['a ping that does not count', '{"type":"ping","data":{"n":"one"}}'],
    ['a command before attach', '{"type":"cmd","data":{"id":"1","op":"retry"}}'],
    ['an attach with more than it has', '{"type":"attach","data":{"client":{"id":"a"},"role":"drive"}}'],
    ['bytes', Buffer.from('{"type":"attach","data":{"client":{"id":"a"}}}')],
  ])('as a bad frame for %s', async (_, frame) => {
    const { ear } = await open()
    ear.socket.send(frame)
    expect(await ear.closed).toMatchObject({ code: closeCodes.badFrame })
  })

  test('for too many frames, even unknown ones', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('view')))
    for (let n = 0; n < 600; n++) ear.say('dance', { n })
    expect(await ear.closed).toMatchObject({ code: closeCodes.rate })
  })

  test('as a bad frame for a second attach', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('view')))
    ear.say('attach', { client: { id: 'ear' } })
    expect(await ear.closed).toMatchObject({ code: closeCodes.badFrame })
  })

  test('for a frame that is too large, before all of it has arrived', async () => {
    const { ear } = await open()
    ear.socket.send('x'.repeat(limits.maxFrameBytes + 1))
    expect(await ear.closed).toMatchObject({ code: closeCodes.tooLarge })
  })

  test('for too many frames', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('view')))
    for (let n = 0; n < 600; n++) ear.say('ping', { n })
    expect(await ear.closed).toMatchObject({ code: closeCodes.rate })
  })

  test('if it does not attach in time', async () => {
    const clock = new FakeClock()
    const { ear } = await open(() => ({ clock, sessions: scriptedSessions() }))
    await vi.waitFor(() => expect(clock.waits).toContain(limits.attachMs))
    clock.advance(limits.attachMs)
    expect(await ear.closed).toMatchObject({ code: closeCodes.noAttach })
  })

  test('but not because the server takes long to open the session', async () => {
    const clock = new FakeClock()
    const sessions = scriptedSessions()
    const opened = Promise.withResolvers<void>()
    const get = sessions.get.bind(sessions)
    sessions.get = async (sessionId) => {
      await opened.promise
      return get(sessionId)
    }
    const { ear } = await open(() => ({ clock, sessions }))
    await vi.waitFor(() => expect(clock.waits).toContain(limits.attachMs))
    ear.say('attach', { client: { id: 'patient' } })
    await vi.waitFor(() => expect(clock.waits).not.toContain(limits.attachMs))
    clock.advance(3 * limits.attachMs)
    opened.resolve()
    await ear.hears('attached')
  })

  test('within a second when its token is revoked, even if it does not answer, and no other is', async () => {
    const { server, id } = await start()
    const { token, record } = await server.tokens.create({ tenant: 'default', role: 'view' })
    const polite = await Ear.attached(server.dial(id, token), 'polite')
    const deaf = await Ear.attached(server.dial(id, token), 'deaf')
    const other = await Ear.attached(server.dial(id, await server.token('view')), 'other')
    deaf.socket.pause()
    const before = performance.now()
    const revoker = await server.token('drive')
    expect(await server.ask(`/api/tokens/${record.id}`, { token: revoker, method: 'DELETE' })).toMatchObject({
      status: 204,
    })
    expect(await polite.closed).toMatchObject({ code: closeCodes.auth })
    const live = await server.sessions.get(id)
    expect([...live.connections].map(({ client }) => client.id)).toEqual(['other'])
    deaf.socket.resume()
    await deaf.closed
    expect(performance.now() - before).toBeLessThan(2000)
    other.say('ping', { n: 1 })
    await other.hears('pong')
  })

  test('when its token expires', async () => {
    const clock = new FakeClock()
    const { server, id } = await start(() => ({ clock }))
    const ear = await Ear.attached(server.dial(id, await server.token('view', 'default', clock.now() + 5000)))
    clock.advance(5000)
    expect(await ear.closed).toMatchObject({ code: closeCodes.auth })
  })

  test('permanently when its session is deleted: the code tells that it is gone', async () => {
    const { server, id } = await start()
    const token = await server.token('drive')
    const ear = await Ear.attached(server.dial(id, token))
    expect(await server.ask(`/api/sessions/${id}`, { token, method: 'DELETE' })).toMatchObject({ status: 204 })
    expect(await ear.closed).toMatchObject({ code: closeCodes.gone })
    expect(ear.heard.at(-1)).toMatchObject({ type: 'gone' })
  })

  test('with a bye when the server shuts down', async () => {
    const { server, id } = await start()
    const ear = await Ear.attached(server.dial(id, await server.token('view')))
    const idle = new Ear(server.dial(id, await server.token('view')))
    await once(idle.socket, 'open')
    expect(await server.server.close()).toBe('in time')
    expect(await ear.closed).toMatchObject({ code: closeCodes.restart })
    expect(await idle.closed).toMatchObject({ code: closeCodes.restart })
    expect(ear.heard.at(-1)).toMatchObject({ type: 'bye' })
  })
})

describe('a socket that takes no data', () => {
  /** Answers of a run, large enough to fill the kernel's buffers of a stopped reader. */
  async function stall(): Promise<{ clock: FakeClock; socket: Socket; server: TestServer; id: string; ear: Ear }> {
    const clock = new FakeClock()
    const big = 'x'.repeat(150_000)
    const sessions = scriptedSessions({
      says: () => {
        const builder = script()
        for (let n = 0; n < 100; n++) builder.text(big).step()
        return builder
      },
    })
    const { server, id } = await start(() => ({ clock, sessions }))
    const ear = await Ear.attached(server.dial(id, await server.token('drive')), 'slow')
    const socket = (ear.socket as unknown as { _socket: Socket })._socket
    socket.pause()
    const live = await sessions.get(id)
    for (let n = 0; n < 100; n++) {
      await live.perform(`c${n}`, 'other', { op: 'prompt', args: { text: 'more' } })
      await vi.waitFor(() => expect(live.driver.isBusy).toBe(false), { interval: 1 })
      const [connection] = live.connections
      if (connection && !connection.isCurrent) break
    }
    return { clock, socket, server, id, ear }
  }

  test('is given at most the high-water mark and one frame, and receives everything when it resumes', async () => {
    const { socket, server, id, ear } = await stall()
    const live = await server.sessions.get(id)
    const [connection] = live.connections
    expect(connection?.isCurrent).toBe(false)
    socket.resume()
    await vi.waitFor(() => expect(connection?.isCurrent).toBe(true))
    const { seq } = live.session.head
    await vi.waitFor(() => expect(ear.heard.some((frame) => 'seq' in frame && frame.seq === seq)).toBe(true))
    const seqs = ear.heard.flatMap((frame) => ('seq' in frame ? [frame.seq] : []))
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => (seqs[0] ?? 0) + index))
  })

  test('for a minute is ended', async () => {
    const { clock, ear, server, id } = await stall()
    for (let look = 0; look < 12; look++) {
      clock.advance(5000)
      await new Promise(setImmediate)
    }
    const live = await server.sessions.get(id)
    await vi.waitFor(() => {
      clock.advance(5000)
      expect(live.connections.size).toBe(0)
    })
    ear.socket.terminate()
  })
})
