import type { FakeAnswer } from '@tapetree/agent/testing'
import type { CDPSession, Page } from 'playwright-core'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { startCommand, type Command } from '../../terminal/command.ts'
import { freePort } from '../serve-path/proxies.ts'

export interface ServeOptions {
  home: FakeHome
  /** Default: a free one. */
  port?: number
  args?: readonly string[]
}

/** `tapetree serve` as a person starts it, and the link that it prints. */
export class ServedApp implements AsyncDisposable {
  readonly command: Command
  readonly port: number
  /** Pairs one device. */
  readonly link: string

  private constructor(command: Command, port: number, link: string) {
    this.command = command
    this.port = port
    this.link = link
  }

  static async start({ home, port, args = [] }: ServeOptions): Promise<ServedApp> {
    const own = port ?? (await freePort())
    // A proof at full size uses one server for long; what uses it ends it.
    const command = startCommand({ home, args: ['serve', '--port', String(own), ...args], timeoutMs: 4 * 3_600_000 })
    await command.untilSaid(/type the code .*\n/)
    return new ServedApp(command, own, /^ {2}(https?:\S+#pair=\S+)$/m.exec(command.stdout)?.[1] ?? '')
  }

  /** The address of the app, with a slash at its end. */
  get url(): string {
    return this.link.slice(0, this.link.indexOf('#'))
  }

  sessionUrl(id: string): string {
    return `${this.url}#/sessions/${id}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.command.kill('SIGTERM')
  }
}

/** Opens a pairing link and takes the role that it grants. */
export async function pair(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('#connection', { hasText: 'Live' }).waitFor()
}

/** A link for another device, made by a page that is paired. */
export async function inviteFrom(page: Page, role = 'drive'): Promise<string> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ role }) }
  const { code } = await page.evaluate<{ code: string }>(
    `fetch('api/pairing', ${JSON.stringify(init)}).then((response) => response.json())`,
  )
  const url = page.url()
  return `${url.split('#')[0] ?? url}#pair=${code}`
}

/** Starts a session with a prompt and opens it. Returns its id. */
export async function startSession(page: Page, prompt: string): Promise<string> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ prompt }) }
  const { id } = await page.evaluate<{ id: string }>(
    `fetch('api/sessions', ${JSON.stringify(init)}).then((response) => response.json())`,
  )
  await page.evaluate(`location.hash = '#/sessions/${id}'`)
  return id
}

/** Until the run of the open session has ended. */
export async function untilIdle(page: Page): Promise<void> {
  await page.locator('.session-head .status.idle').waitFor()
}

/** What the open session shows, in one line. */
export async function textOf(page: Page): Promise<string> {
  return (await page.locator('.rows').innerText()).replaceAll(/\s+/g, ' ')
}

/** Types a message and sends it. */
export async function send(page: Page, words: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(words)
  await page.getByRole('button', { name: /^(?:Send|Steer)$/ }).click()
}

/**
 * Delivers a push message to the service worker of a page once, as a push service would. Returns the title of the notification and how
 * long it took.
 */
export async function deliverPush(page: Page, data: string): Promise<{ title: string; tookMs: number }> {
  const { origin } = new URL(page.url())
  const debugging = await page.context().newCDPSession(page)
  const registrationId = await registrationOf(debugging, origin)
  // A worker that is not active yet gets no message.
  await page.evaluate('navigator.serviceWorker.ready.then(() => undefined)')
  const worker =
    page
      .context()
      .serviceWorkers()
      .find((each) => each.url().startsWith(origin)) ?? (await page.context().waitForEvent('serviceworker'))
  await worker.evaluate(`{
    if (!('received' in globalThis)) {
      addEventListener('push', () => void received++)
      const show = registration.showNotification.bind(registration)
      registration.showNotification = async (...given) => show(...given).finally(() => shown.resolve())
    }
    globalThis.received = 0
    globalThis.shown = Promise.withResolvers()
  }`)
  const sentAt = Date.now()
  await debugging.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data })
  // Chromium forgets a notification that is read while it is being shown, so it is read once, afterwards.
  await worker.evaluate('Promise.race([shown.promise, new Promise((late) => setTimeout(late, 10_000))])')
  const tookMs = Date.now() - sentAt
  const titles = await page.evaluate<string[]>(`navigator.serviceWorker.ready.then(async (registration) => {
    const shown = await registration.getNotifications()
    for (const each of shown) each.close()
    return shown.map(({ title }) => title)
  })`)
  await debugging.detach()
  const received = await worker.evaluate<number>('received')
  const [title] = titles
  if (title === undefined || titles.length !== 1 || received !== 1)
    throw new Error(`1 push message was delivered, ${received} reached the service worker, ${titles.length} are shown.`)
  return { title, tookMs }
}

async function registrationOf(debugging: CDPSession, origin: string): Promise<string> {
  const registered = new Promise<string>((resolve) => {
    debugging.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const own = registrations.find(({ scopeURL, isDeleted }) => scopeURL.startsWith(origin) && !isDeleted)
      if (own) resolve(own.registrationId)
    })
  })
  await debugging.send('ServiceWorker.enable')
  return registered
}

export function answer(...content: FakeAnswer['content']): FakeAnswer {
  return { type: 'answer', content }
}

export function call(id: string, tool: string, input: Record<string, unknown>): FakeAnswer['content'][number] {
  return { type: 'tool_call', id, name: tool, chunks: [JSON.stringify(input)] }
}
