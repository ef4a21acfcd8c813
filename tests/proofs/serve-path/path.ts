import type { Page } from 'playwright-core'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteView } from '../docs-site/site-browser.ts'
import { PathClient } from './client.ts'

export interface PathOptions {
  view: SiteView
  /** Another device. */
  otherView: SiteView
  home: FakeHome
  /** As `tapetree serve` printed it. */
  link: string
  /** What the browser and other clients must have seen of the certificate. */
  fingerprint: string | undefined
  /** Unique, for the gates of the provider. */
  name: string
  complain: (problem: string) => void
  /** Called when a step of the person has ended. */
  reached: (step: string) => void
  /** Called with a program that the person has invited, before the person signs out. */
  withClient?: (client: PathClient) => Promise<void>
}

/**
 * What a person does with the link, on a phone: pair, watch a session run, answer it elsewhere, pair another device by
 * hand, sign out.
 */
export async function walk(options: PathOptions): Promise<void> {
  const { view, link, fingerprint, complain, reached } = options
  const { page } = view
  const url = new URL(link)
  const code = new URLSearchParams(url.hash.slice(1)).get('pair') ?? ''
  const base = link.slice(0, link.indexOf('#')).replace(/\/$/, '')
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== url.origin) complain(`the page asked ${request.url()}`)
    if (request.url().includes(code)) complain(`the code is in the request to ${request.url()}`)
  })
  await page.goto(link)
  await page.locator('#grant-form').waitFor()
  if (page.url() !== `${base}/`) complain(`the address bar shows ${page.url()} after the code was read`)
  if (!/^\s*Drive \(.*grant/.test(await page.locator('#roles label').first().innerText()))
    complain('the page does not say which role the link grants')
  reached('page')
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('#connection', { hasText: 'Live' }).waitFor()
  if (!(await page.locator('#role').innerText()).includes('role drive')) complain('the page does not name its role')
  reached('paired')
  await checkCookie(options)
  const { code: pair } = await ask<{ code: string }>(page, 'api/pairing', { role: 'drive', name: 'a program' })
  const fragment = new URLSearchParams({ pair, ...(fingerprint !== undefined && { fingerprint }) })
  await using client = await PathClient.pair(`${base}/#${fragment.toString()}`)
  await watchRun(options, client)
  reached('watched')
  await useDocs(options, base)
  await openUsedLink(options, code)
  await pairByHand(options, { base, code: await client.invite('approve') })
  reached('paired by hand')
  await options.withClient?.(client)
  await page.goto(`${base}/`)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.locator('#code-form').waitFor()
  const { status } = await ask<{ status?: number }>(page, 'api/caller')
  if (status !== 401) complain(`after signing out, the caller is still known: ${status}`)
  // It was invited by a program that this device had invited.
  await options.otherView.page.locator('#notice', { hasText: 'access of this device has ended' }).waitFor()
  reached('signed out')
}

/** As a person types it, who takes fewer rights than are offered. */
async function pairByHand(
  { otherView: { page }, complain }: PathOptions,
  { base, code }: { base: string; code: string },
): Promise<void> {
  await page.goto(`${base}/`)
  await page.getByLabel('Pairing code').fill(code.toLowerCase().replaceAll('-', ' '))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.locator('#grant-form').waitFor()
  const inputs = page.locator('#roles input')
  const offered = await inputs.evaluateAll((all) => all.map((each) => each.getAttribute('value')))
  if (offered.join() !== 'approve,queue,view') complain(`a code for approve offers ${offered.join()}`)
  await page.getByRole('radio', { name: 'View' }).check()
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('#role', { hasText: 'role view' }).waitFor()
  await page.locator('#connection', { hasText: 'Live' }).waitFor()
}

/** The JSON of a response to a script of the page, by its cookie. */
function ask<Body>(page: Page, path: string, body?: unknown): Promise<Body> {
  const headers = { 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
  return page.evaluate<Body>(
    `fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then((response) => response.json())`,
  )
}

/** Scripts cannot read it, other sites do not send it, and only the server's own path gets it. */
async function checkCookie({ view, link, complain }: PathOptions): Promise<void> {
  const { protocol, pathname } = new URL(link)
  const [cookie, ...others] = await view.page.context().cookies()
  const isSecure = protocol === 'https:'
  if (!cookie || others.length > 0) return complain(`there are ${others.length + 1} cookies`)
  const { httpOnly, secure, sameSite, path } = cookie
  if (!httpOnly || sameSite !== 'Strict' || secure !== isSecure || path !== pathname)
    complain(`the cookie is ${JSON.stringify({ httpOnly, secure, sameSite, path })}`)
}

/** A session runs, asks for permission and ends; the page follows, and a client sees each line once and text while it is written. */
async function watchRun({ view, home, name, complain }: PathOptions, client: PathClient): Promise<void> {
  const { page } = view
  const { id } = await client.rest.createSession({ name: `A walk ${name}` })
  const session = await client.attach(id)
  const row = page.locator('#sessions li', { hasText: `A walk ${name}` })
  await row.locator('.idle').waitFor()
  const gates = { text: `${name}-text`, end: `${name}-end` }
  home.provider.script(
    {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['I shall '] },
        { type: 'wait', gate: gates.text },
        { type: 'text', chunks: ['ask first.'] },
        { type: 'tool_call', id: `call-${name}`, name: 'bash', chunks: [JSON.stringify({ command: 'touch asked' })] },
      ],
    },
    {
      type: 'answer',
      content: [
        { type: 'wait', gate: gates.end },
        { type: 'text', chunks: ['Not done.'] },
      ],
    },
  )
  await session.prompt('Touch a file.')
  await row.locator('.running').waitFor()
  // The answer is held back, so this arrives only if nothing on the way buffers.
  await client.untilStreamed('I shall ')
  home.provider.release(gates.text)
  await row.locator('.needs-you').waitFor()
  if (!(await page.title()).startsWith('(1)')) complain('the title does not say that a session needs the person')
  const { permissions } = await client.rest.permissions(id)
  const [asked] = permissions
  const refusal = asked?.options?.find(({ kind }) => kind?.startsWith('reject'))
  if (!asked || !refusal) return complain('no permission is pending that could be refused')
  await client.rest.answer(id, asked.requestId, { optionId: refusal.optionId })
  await row.locator('.running').waitFor()
  home.provider.release(gates.end)
  await row.locator('.idle').waitFor()
  const { seq: last } = (await client.rest.events(id)).head
  await client.untilLine(last)
  for (const [way, seqs] of Object.entries({ WebSocket: client.bySocket, 'event stream': client.byStream })) {
    const [first = 0] = seqs
    const isWhole = seqs.every((seq, index) => seq === first + index) && seqs.at(-1) === last
    if (!isWhole) complain(`the ${way} brought the lines ${seqs.join()} and the log has ${last}`)
  }
}

async function useDocs({ view, complain }: PathOptions, base: string): Promise<void> {
  const { page } = view
  await page.goto(`${base}/`)
  await page.getByRole('link', { name: 'API explorer' }).click()
  await page.locator('#routes details').first().waitFor()
  await page.locator('#filter').fill('/api/caller')
  const route = page.locator('#routes details:not([hidden])')
  await route.locator('summary').click()
  await route.getByRole('button', { name: 'Send' }).click()
  await route.locator('pre', { hasText: '"role": "drive"' }).waitFor()
  if (!page.url().endsWith('/api/docs')) complain(`the API explorer is at ${page.url()}`)
}

async function openUsedLink({ view, link, complain }: PathOptions, code: string): Promise<void> {
  const { page } = view
  await page.goto(link.replace(code, code.toLowerCase()))
  const notice = page.locator('#notice')
  await notice.waitFor()
  const sentence = await notice.innerText()
  if (!/already used/.test(sentence) || !/press enter/i.test(sentence))
    complain(`a used link says ${JSON.stringify(sentence)}`)
}
