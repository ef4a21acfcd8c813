import { onlyModel } from '@tapetree/agent'
import type { Network } from '@tapetree/agent/tools'
import { script, scriptedModel, type ScriptBuilder } from '@tapetree/agent/testing'
import { memoryStore } from '@tapetree/session'
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { askingGate } from '../http/testing/asking-gate.ts'
import { TestServer } from '../testing/running-server.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A browser: it makes the keys of a subscription and decrypts what arrives. */
class Browser {
  readonly #keys = createECDH('prime256v1')
  readonly #auth = randomBytes(16)
  readonly endpoint: string

  constructor(name: string) {
    this.#keys.generateKeys()
    this.endpoint = `https://push.example.com/${name}`
  }

  get subscription(): object {
    const keys = { p256dh: this.#keys.getPublicKey('base64url'), auth: this.#auth.toString('base64url') }
    return { endpoint: this.endpoint, keys }
  }

  decrypt(body: Buffer): unknown {
    const [salt, keyLength] = [body.subarray(0, 16), body.readUInt8(20)]
    const sender = body.subarray(21, 21 + keyLength)
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.#keys.getPublicKey(), sender])
    const secret = hkdfSync('sha256', this.#keys.computeSecret(sender), this.#auth, info, 32)
    const derive = (use: string, length: number): Buffer =>
      Buffer.from(hkdfSync('sha256', Buffer.from(secret), salt, `Content-Encoding: ${use}\0`, length))
    const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12))
    decipher.setAuthTag(body.subarray(-16))
    const text = Buffer.concat([decipher.update(body.subarray(21 + keyLength, -16)), decipher.final()])
    expect(text.at(-1)).toBe(2)
    return JSON.parse(text.subarray(0, -1).toString())
  }
}

interface Delivered {
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

interface PushEndpoint {
  delivered: Delivered[]
  /** Requests of the server to `push.example.com` arrive here. */
  network: Network
  status: number
}

async function pushEndpoint(): Promise<PushEndpoint> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      endpoint.delivered.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(endpoint.status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const endpoint: PushEndpoint = {
    delivered: [],
    status: 201,
    network: {
      allowPrivate: false,
      lookup: async (hostname) => [{ address: hostname.endsWith('.example.com') ? '8.8.8.8' : '10.0.0.1', family: 4 }],
      fetch: async (url, { method = 'GET', headers, body }) => {
        const { pathname } = new URL(url)
        const init = { method, headers: headers as Record<string, string>, body: body as Uint8Array<ArrayBuffer> }
        return (await fetch(`http://127.0.0.1:${port}${pathname}`, init)) as never
      },
    },
  }
  return endpoint
}

async function start(said: ScriptBuilder): Promise<{ server: TestServer; endpoint: PushEndpoint }> {
  const endpoint = await pushEndpoint()
  const model = scriptedModel(said)
  const sessions = agentSessions({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: askingGate,
    hasSubagents: false,
  })
  const server = await TestServer.start((folder) => ({
    sessions,
    push: { file: join(folder, 'push.json'), network: endpoint.network },
  }))
  cleanUps.push(() => server.close())
  return { server, endpoint }
}

const delivered = async (endpoint: PushEndpoint, count: number): Promise<Delivered[]> =>
  vi.waitFor(() => {
    expect(endpoint.delivered.length).toBeGreaterThanOrEqual(count)
    return endpoint.delivered
  })

test('a browser hears that a session needs a permission, and that its run has ended', async () => {
  const { server, endpoint } = await start(script().toolCall('call-1', 'act', {}).step().text('A private answer.'))
  const token = await server.token('drive')
  const browser = new Browser('laptop')
  const added = await server.ask('/api/push/subscriptions', { token, json: browser.subscription })
  expect([added.status, added.body]).toMatchObject([201, { service: 'https://push.example.com' }])
  const { public_key: publicKey } = (await server.ask('/api/push/key', { token })).body as { public_key: string }
  const id = await server.sessions.create({ cwd: '/', name: 'Refactor' })
  await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'A private question' } })
  const [asked] = await delivered(endpoint, 1)
  const message = browser.decrypt(asked?.body ?? Buffer.alloc(0)) as { request_id: string }
  expect(message).toEqual({ session_id: id, name: 'Refactor', needs: 'permission', request_id: message.request_id })
  expect(asked).toMatchObject({ path: '/laptop', headers: { 'content-encoding': 'aes128gcm', urgency: 'high' } })
  expect(asked?.headers.authorization).toContain(`k=${publicKey}`)
  const answer = { option_id: 'yes' }
  await server.ask(`/api/sessions/${id}/permissions/${message.request_id}`, { token, json: answer })
  const [, ended] = await delivered(endpoint, 2)
  expect(browser.decrypt(ended?.body ?? Buffer.alloc(0))).toEqual({
    session_id: id,
    name: 'Refactor',
    needs: 'finished',
  })
  expect(ended?.headers['urgency']).toBe('normal')
})

test('the keys are made once, in a file that only its owner can read, and survive a restart', async () => {
  const { server } = await start(script())
  const token = await server.token('view')
  const key = async (): Promise<unknown> => (await server.ask('/api/push/key', { token })).body
  const first = await key()
  expect(await Promise.all([key(), key()])).toEqual([first, first])
  expect((await stat(join(server.folder, 'push.json'))).mode & 0o777).toBe(0o600)
})

test('a subscription belongs to its token, and ends when the token is revoked or the browser is gone', async () => {
  const { server, endpoint } = await start(script().text('one').step().text('two').step().text('three'))
  const { token, record } = await server.tokens.create({ tenant: 'default', role: 'drive' })
  const other = await server.token('view')
  const [laptop, phone] = [new Browser('laptop'), new Browser('phone')]
  const path = '/api/push/subscriptions'
  await server.ask(path, { token, json: laptop.subscription })
  await server.ask(path, { token, json: laptop.subscription })
  const { id } = (await server.ask(path, { token: other, json: phone.subscription })).body as { id: string }
  const listed = async (by: string): Promise<number> =>
    ((await server.ask(path, { token: by })).body as { subscriptions: unknown[] }).subscriptions.length
  expect([await listed(token), await listed(other)]).toEqual([1, 1])
  expect((await server.ask(`${path}/${id}`, { token, method: 'DELETE' })).status).toBe(404)
  expect((await server.ask(path, { token: other })).text).not.toContain('/phone')

  const session = await server.sessions.create({ cwd: '/' })
  const run = (): Promise<unknown> =>
    server.ask(`/api/sessions/${session}/prompt`, { token: driver, json: { text: 'go' } })
  const driver = await server.token('drive')
  await run()
  expect((await delivered(endpoint, 2)).map((each) => each.path).sort()).toEqual(['/laptop', '/phone'])

  await server.tokens.revoke(record.id, 'default')
  await run()
  await delivered(endpoint, 3)
  expect(endpoint.delivered.slice(2).map((each) => each.path)).toEqual(['/phone'])

  endpoint.status = 410
  await run()
  await delivered(endpoint, 4)
  await vi.waitFor(async () => expect(await listed(other)).toBe(0))
})

test('a token that is limited to a folder hears only of its sessions, and cannot change settings', async () => {
  const { server, endpoint } = await start(script().text('one').step().text('two'))
  const { token } = await server.tokens.create({ tenant: 'default', role: 'drive', folder: server.folder })
  const browser = new Browser('limited')
  await server.ask('/api/push/subscriptions', { token, json: browser.subscription })
  const driver = await server.token('drive')
  const everywhere = new Browser('all')
  await server.ask('/api/push/subscriptions', { token: driver, json: everywhere.subscription })
  for (const cwd of ['/', server.folder]) {
    const id = await server.sessions.create({ cwd })
    await server.ask(`/api/sessions/${id}/prompt`, { token: driver, json: { text: 'go' } })
  }
  await delivered(endpoint, 3)
  expect(endpoint.delivered.map(({ path }) => path).sort()).toEqual(['/all', '/all', '/limited'])
  const settings = await server.ask('/api/settings', { token, method: 'PATCH', json: { theme: 'dark' } })
  expect(settings.body).toMatchObject({ status: 403, type: 'owner-only' })
})

test.each([
  'http://push.example.com/a',
  'https://127.0.0.1/a',
  'https://[::1]/a',
  'https://169.254.169.254/latest',
  'https://user:pass@push.example.com/a',
  'https://push.example.com:8443/a',
  'ftp://push.example.com/',
  'nonsense',
])('%s is not an endpoint', async (endpoint) => {
  const { server } = await start(script())
  const token = await server.token('view')
  const json = { ...new Browser('x').subscription, endpoint }
  expect((await server.ask('/api/push/subscriptions', { token, json })).status).toBe(422)
})

test('an endpoint whose name leads to a private address gets nothing', async () => {
  const { server, endpoint } = await start(script().text('done'))
  const token = await server.token('drive')
  const [far, near] = [new Browser('far'), { ...new Browser('x').subscription, endpoint: 'https://intranet.test/x' }]
  await server.ask('/api/push/subscriptions', { token, json: near })
  await server.ask('/api/push/subscriptions', { token, json: far.subscription })
  const id = await server.sessions.create({ cwd: '/' })
  await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'go' } })
  await delivered(endpoint, 1)
  expect(endpoint.delivered.map(({ path }) => path)).toEqual(['/far'])
})

test('wrong keys are rejected, and a server without push says so', async () => {
  const { server } = await start(script())
  const token = await server.token('view')
  const { endpoint } = new Browser('x')
  for (const keys of [
    { p256dh: 'AAAA', auth: 'AAAA' },
    { p256dh: Buffer.alloc(65, 4).toString('base64url'), auth: 'A' },
  ])
    expect((await server.ask('/api/push/subscriptions', { token, json: { endpoint, keys } })).body).toMatchObject({
      status: 422,
      type: 'invalid-subscription',
    })
  const plain = await TestServer.start()
  cleanUps.push(() => plain.close())
  const answer = await plain.ask('/api/push/key', { token: await plain.token('view') })
  expect(answer.body).toMatchObject({ status: 404, type: 'no-push' })
})
