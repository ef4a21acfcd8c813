import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import { fakeHome, type FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { startTerminal } from '../../terminal/terminal.ts'
import type { SiteBrowser } from '../docs-site/site-browser.ts'
import { answer, call, inviteFrom, pair, send, ServedApp, startSession, textOf, untilIdle } from './served-app.ts'

interface TogetherOptions {
  browser: SiteBrowser
  /** How often two people answer the same request. */
  races: number
  random: () => number
  complain: (problem: string) => void
}

/** Two browsers and a terminal on one session: each sees what the others write, and one answer to a request counts. */
export async function together({ browser, races, random, complain }: TogetherOptions): Promise<void> {
  await using home = await fakeHome()
  await using app = await ServedApp.start({ home })
  await using desk = await browser.open({ width: 1440, scheme: 'dark' })
  await using phone = await browser.open({ width: 360, scheme: 'light' })
  const pages = [desk.page, phone.page]
  for (const page of pages) page.setDefaultTimeout(30_000)
  await pair(desk.page, app.link)
  await pair(phone.page, await inviteFrom(desk.page))
  home.provider.script(answer({ type: 'text', chunks: ['Hello to all of you.'] }))
  const sessionId = await startSession(desk.page, 'From the desk.')
  await desk.page.getByText('Hello to all of you.').waitFor()
  await phone.page.goto(app.sessionUrl(sessionId))
  // A person at another machine, who pairs by the link.
  await using otherHome = await fakeHome()
  const link = await inviteFrom(desk.page)
  await using terminal = startTerminal({ home: otherHome, args: ['attach', link, sessionId], patienceMs: 30_000 })
  await terminal.waitFor('Hello to all of you.')
  await phone.page.getByText('Hello to all of you.').waitFor()

  home.provider.script(answer({ type: 'text', chunks: ['The terminal has spoken.'] }))
  terminal.type('From the terminal.')
  await terminal.waitFor('From the terminal.')
  terminal.press('enter')
  for (const page of pages) {
    await page.locator('.mine', { hasText: 'From the terminal.' }).waitFor()
    await page.getByText('The terminal has spoken.').waitFor()
    await untilIdle(page)
  }
  home.provider.script(answer({ type: 'text', chunks: ['The phone has spoken.'] }))
  await send(phone.page, 'From the phone.')
  await terminal.waitFor('The phone has spoken.')
  await desk.page.getByText('The phone has spoken.').waitFor()

  for (const mode of ['plan', 'ask']) {
    await desk.page.getByLabel('Permission mode').selectOption(mode)
    await phone.page
      .getByLabel('Permission mode')
      .locator('option:checked', { hasText: new RegExp(`^${mode}$`) })
      .waitFor({ state: 'attached' })
  }

  const outcomes: boolean[] = []
  for (let race = 0; race < races; race++)
    outcomes.push(await raceForPermission({ home, pages, race, first: random() < 0.5 ? 0 : 1 }))
  const texts = await Promise.all(pages.map(textOf))
  // A phone draws fewer of the oldest rows.
  const length = Math.min(...texts.map((text) => text.length))
  const [onDesk, onPhone] = texts.map((text) => text.slice(-length))
  if (length === 0 || onDesk !== onPhone)
    complain(`two browsers show different sessions: ${JSON.stringify([onDesk, onPhone])}`)
  await app.command.kill('SIGTERM')
  await checkLog({ home, sessionId, outcomes, complain })
}

interface Race {
  home: FakeHome
  pages: readonly Page[]
  race: number
  /** Which page allows; the other one denies. */
  first: 0 | 1
}

/** One allows and the other denies at the same moment. Returns whether the command ran. */
async function raceForPermission({ home, pages, race, first }: Race): Promise<boolean> {
  const file = `race-${race}.txt`
  home.provider.script(
    answer(call(`race-${race}`, 'bash', { command: `touch ${file}` })),
    answer({ type: 'text', chunks: [`End of race ${race}.`] }),
  )
  const [allowing, denying] = first === 0 ? pages : pages.toReversed()
  if (!allowing || !denying) throw new Error('A race needs two pages.')
  await send(allowing, `Race ${race}.`)
  const requests = [allowing, denying].map((page) => page.getByRole('region', { name: 'Allow bash?' }))
  await Promise.all(requests.map((request) => request.waitFor()))
  const press = (page: Page, name: string): Promise<void> =>
    // The other may have been faster: then there is no button any more.
    page
      .getByRole('region', { name: 'Allow bash?' })
      .getByRole('button', { name, exact: true })
      .click({ timeout: 5000, noWaitAfter: true })
      .catch(() => undefined)
  await Promise.all([press(allowing, 'Allow once'), press(denying, 'Do not allow')])
  for (const page of pages) {
    await page.getByText(`End of race ${race}.`).waitFor()
    await untilIdle(page)
  }
  return existsSync(join(home.cwd, file))
}

/** Each request has one result, and what it says is what happened. */
async function checkLog(given: {
  home: FakeHome
  sessionId: string
  outcomes: readonly boolean[]
  complain: (problem: string) => void
}): Promise<void> {
  const { home, sessionId, outcomes, complain } = given
  await using store = await openStore(placesOf(home))
  await using session = await store.open(sessionId, { readOnly: true })
  const results: string[] = []
  for await (const line of session.lines()) {
    if (line.type !== 'line') continue
    const { permission_result: result } = JSON.parse(line.text) as { permission_result?: { outcome: string } }
    if (result) results.push(result.outcome)
  }
  const expected = outcomes.map((ran) => (ran ? 'allowed' : 'rejected'))
  if (results.join() !== expected.join())
    complain(`the log has the answers ${results.join()}, and the commands say ${expected.join()}`)
}
