import { onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import type { Network } from '@tapetree/agent/tools'
import { memoryStore } from '@tapetree/session'
import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { agentSessions } from '../../../packages/server/src/drivers/agent-sessions.ts'
import { askingGate } from '../../../packages/server/src/http/testing/asking-gate.ts'
import { TestServer } from '../../../packages/server/src/testing/running-server.ts'
import type { SiteBrowser } from '../docs-site/site-browser.ts'
import { deliverPush } from './served-app.ts'

/** From the record of the request to the push service, and from there to the notification. */
const limitMs = 2000

/**
 * Web Push from end to end: the page subscribes with the key of the server, a session asks for permission, the message arrives at the push
 * service, a browser decrypts it, and the service worker shows the notification. Chromium without an account has no push service, so
 * `PushManager.subscribe` and the delivery to the service worker are replaced.
 */
export async function push(browser: SiteBrowser, complain: (problem: string) => void): Promise<void> {
  const subscriber = new Subscriber()
  const service = new PushService()
  const model = scriptedModel(script().toolCall('call-1', 'act', {}).step().text('Done.'))
  const sessions = agentSessions({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: askingGate,
    hasSubagents: false,
  })
  const server = await TestServer.start((folder) => ({
    sessions,
    push: { file: join(folder, 'push.json'), network: service.network },
  }))
  await using _server = { [Symbol.asyncDispose]: () => server.close() }
  await using view = await browser.open({ width: 360, scheme: 'light' })
  const { page } = view
  page.setDefaultTimeout(15_000)
  const { origin } = new URL(server.server.url)
  await page.context().grantPermissions(['notifications'], { origin })
  await page.addInitScript(`PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    globalThis.subscribedWith = { applicationServerKey, userVisibleOnly }
    return { toJSON: () => (${JSON.stringify(subscriber.subscription)}) }
  }`)
  const token = await server.token('drive')
  await page.goto(origin)
  await post(page, 'sign-in', { token })
  await page.goto(`${origin}/#/settings/notifications`)
  await page.reload()
  await page.getByRole('button', { name: 'Turn on push messages' }).click()
  const subscribed = await untilSubscribed(server, token)
  if (subscribed !== subscriber.service) complain(`the server has a subscription of ${String(subscribed)}`)
  const key = (await server.ask('/api/push/key', { token })).body as { public_key: string }
  const used = await page.evaluate<{ applicationServerKey: string; userVisibleOnly: boolean }>('subscribedWith')
  if (used.applicationServerKey !== key.public_key || !used.userVisibleOnly)
    complain(`the page subscribes with ${JSON.stringify(used)}`)

  const id = await sessions.create({ cwd: '/', name: 'Refactor' })
  await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text: 'Go.' } })
  const { at, body, authorization } = await service.next
  const { events } = (await server.ask(`/api/sessions/${id}/events`, { token })).body as {
    events: { type: string; timestamp: string }[]
  }
  const recordedAt = Date.parse(events.find(({ type }) => type === 'permission_request')?.timestamp ?? '')
  if (!(at - recordedAt <= limitMs)) complain(`the push message is sent ${at - recordedAt} ms after the record`)
  if (!authorization.includes(`k=${key.public_key}`))
    complain('the push message is not signed with the key of the server')
  const message = subscriber.decrypt(body)
  const { title, tookMs } = await deliverPush(page, message)
  if (title !== 'Refactor asks for permission') complain(`the push message ${message} shows as ${title}`)
  if (tookMs > limitMs) complain(`a push message is shown after ${tookMs} ms`)
}

/** What a browser and its push service do with a subscription. */
class Subscriber {
  readonly #keys = createECDH('prime256v1')
  readonly #auth = randomBytes(16)
  readonly service = 'https://push.example.com'

  constructor() {
    this.#keys.generateKeys()
  }

  get subscription(): { endpoint: string; keys: { p256dh: string; auth: string } } {
    const keys = { p256dh: this.#keys.getPublicKey('base64url'), auth: this.#auth.toString('base64url') }
    return { endpoint: `${this.service}/phone`, keys }
  }

  /** As RFC 8291 says: one record of aes128gcm, whose padding begins with a 2. */
  decrypt(body: Buffer): string {
    const [salt, keyLength] = [body.subarray(0, 16), body.readUInt8(20)]
    const sender = body.subarray(21, 21 + keyLength)
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), this.#keys.getPublicKey(), sender])
    const secret = hkdfSync('sha256', this.#keys.computeSecret(sender), this.#auth, info, 32)
    const derive = (use: string, length: number): Buffer =>
      Buffer.from(hkdfSync('sha256', Buffer.from(secret), salt, `Content-Encoding: ${use}\0`, length))
    const decipher = createDecipheriv('aes-128-gcm', derive('aes128gcm', 16), derive('nonce', 12))
    decipher.setAuthTag(body.subarray(-16))
    const text = Buffer.concat([decipher.update(body.subarray(21 + keyLength, -16)), decipher.final()])
    return text.subarray(0, text.lastIndexOf(2)).toString()
  }
}

interface Arrived {
  at: number
  body: Buffer
  authorization: string
}

/** Requests of the server to the push service end here. */
class PushService {
  readonly #arrived = Promise.withResolvers<Arrived>()
  readonly network: Network = {
    allowPrivate: false,
    lookup: () => Promise.resolve([{ address: '8.8.8.8', family: 4 }]),
    fetch: (_url, { headers, body }) => {
      const { authorization = '' } = headers as Record<string, string>
      this.#arrived.resolve({ at: Date.now(), body: Buffer.from(body as Uint8Array), authorization })
      return Promise.resolve(new Response(null, { status: 201 }) as never)
    },
  }

  /** The first message. */
  get next(): Promise<Arrived> {
    return this.#arrived.promise
  }
}

async function post(page: Page, path: string, body: unknown): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  await page.evaluate(`fetch('api/${path}', ${JSON.stringify(init)}).then(({ ok, status }) => {
    if (!ok) throw new Error('The server answered ' + status + '.')
  })`)
}

async function untilSubscribed(server: TestServer, token: string): Promise<string | undefined> {
  for (const end = Date.now() + 15_000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    const { subscriptions } = (await server.ask('/api/push/subscriptions', { token })).body as {
      subscriptions: { service: string }[]
    }
    if (subscriptions[0]) return subscriptions[0].service
  }
  return undefined
}
