import type { FakeAnswer } from '@tapetree/agent/testing'
import type { Page } from 'playwright-core'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteBrowser, SiteView } from '../docs-site/site-browser.ts'

/** What a journey on the session screen needs. */
export interface SessionJourney {
  browser: SiteBrowser
  home: FakeHome
  /** A paired page with the role drive. */
  phone: Page
  /** Of the app, without the fragment. */
  base: string
  say: (line: string) => void
  complain: (problem: string) => void
  /** Paired browsers by their look, which the journeys share. */
  views: Map<string, SiteView>
  /** Keeps a picture if pictures are wanted. */
  picture: (view: SiteView, name: string) => Promise<void>
}

export type Look = { width: number; scheme: 'light' | 'dark' }

/** A paired browser with this look: a new one, or that of an earlier journey. */
export async function openPaired({ browser, phone, base, views }: SessionJourney, look: Look): Promise<SiteView> {
  const name = `${look.width} ${look.scheme}`
  const known = views.get(name)
  if (known) return known
  const view = await browser.open(look)
  views.set(name, view)
  const { page } = view
  page.setDefaultTimeout(15_000)
  const { code } = await phone.evaluate<{ code: string }>(
    `fetch('api/pairing', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"role":"drive"}' }).then((each) => each.json())`,
  )
  await page.goto(`${base}#pair=${code}`)
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('#connection', { hasText: 'Live' }).waitFor()
  return view
}

/** A new session in the working folder, opened on the page. Returns its id. */
export async function newSession({ home, base }: SessionJourney, page: Page): Promise<string> {
  const { id } = await page.evaluate<{ id: string }>(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify({ cwd: home.cwd }))} }).then((each) => each.json())`,
  )
  await page.goto(`${base}#/sessions/${id}`)
  await page.getByLabel('Message', { exact: true }).waitFor()
  return id
}

export async function send(page: Page, words: string, button = /^(?:Send|Steer)$/): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(words)
  await page.getByRole('button', { name: button }).click()
}

export async function untilIdle(page: Page): Promise<void> {
  await page.locator('.session-head .status.idle').waitFor()
}

/** What axe and the console say about the page as it is now. */
export async function inspect(journey: SessionJourney, view: SiteView, name: string): Promise<void> {
  for (const problem of await view.inspect()) if (!/\b401\b/.test(problem)) journey.complain(`${name}: ${problem}`)
  await journey.picture(view, name)
}

export function answer(...content: FakeAnswer['content']): FakeAnswer {
  return { type: 'answer', content }
}

export function said(...chunks: string[]): FakeAnswer['content'][number] {
  return { type: 'text', chunks }
}

export function call(id: string, tool: string, input: Record<string, unknown>): FakeAnswer['content'][number] {
  return { type: 'tool_call', id, name: tool, chunks: [JSON.stringify(input)] }
}
