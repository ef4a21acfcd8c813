import {
  answer,
  call,
  inspect,
  newSession,
  openPaired,
  said,
  send,
  untilIdle,
  type SessionJourney,
} from './session-journey.ts'

/** Two browsers answer the same request at once: one answer counts, and the other browser says who gave it. */
export async function raceJourney(journey: SessionJourney): Promise<void> {
  const { home, base, complain } = journey
  const wide = await openPaired(journey, { width: 1440, scheme: 'light' })
  const narrow = await openPaired(journey, { width: 360, scheme: 'dark' })
  const id = await newSession(journey, wide.page)
  await narrow.page.goto(`${base}#/sessions/${id}`)
  await narrow.page.getByLabel('Message', { exact: true }).waitFor()
  home.provider.script(
    answer(call('r1', 'bash', { command: 'echo raced >> raced.txt && cat raced.txt' })),
    answer(said('It ran.')),
  )
  await send(wide.page, 'Run it.')
  const pages = [wide.page, narrow.page]
  const buttons = pages.map((page) => page.getByRole('region', { name: 'Allow bash?' }).getByText('Allow once'))
  for (const button of buttons) await button.waitFor()
  await Promise.all(buttons.map((button) => button.click({ timeout: 3000 }).catch(() => undefined)))
  const told = pages.map((page) => page.getByText(/Answered by \w+ on .* on another screen/).waitFor())
  await Promise.any(told)
  for (const each of told) each.catch(() => undefined)
  for (const page of pages) await page.getByText('It ran.').waitFor()
  await untilIdle(wide.page)
  if ((await wide.page.locator('.call', { hasText: 'raced.txt' }).count()) !== 1) complain('the command ran twice')
}

/** What calls look like: a denied one, a diff on both sides, the work of a subagent, and the keys of the screen. */
export async function callsJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  const view = await openPaired(journey, { width: 1440, scheme: 'dark' })
  const { page } = view
  await newSession(journey, page)
  home.provider.script(
    answer(call('d1', 'bash', { command: 'rm -rf build' })),
    answer(call('d2', 'write', { path: 'made.txt', content: 'one\ntwo\n' })),
    answer(call('d3', 'write', { path: 'made.txt', content: 'one\nthree\n' })),
    answer(said('All three are settled.')),
  )
  await send(page, 'Try it.')
  await page.getByRole('button', { name: 'Deny with a note' }).click()
  await page.getByLabel('Why not?').fill('Not today.')
  await page.getByRole('button', { name: 'Do not allow' }).click()
  await page.locator('.note.denied', { hasText: 'denied' }).waitFor()
  await page.getByText('The user did not allow this: Not today.').waitFor()
  const write = page.getByRole('region', { name: 'Allow write?' })
  await write.waitFor()
  await write.getByRole('button', { name: 'Side by side' }).click()
  await write.locator('table.split').first().waitFor()
  await inspect(journey, view, 'split-diff')
  await write.getByRole('button', { name: 'Allow once' }).click()
  const overwrite = write.filter({ hasText: 'three' })
  await overwrite.waitFor()
  const what = await overwrite.locator('.what').innerText()
  if (!/^Write \S+made\.txt$/.test(what)) complain(`a request to overwrite a file shows ${what}`)
  await overwrite.getByRole('button', { name: 'Allow once' }).click()
  await page.getByText('All three are settled.').waitFor()
  await untilIdle(page)
  if ((await page.locator('.note.failed').count()) !== 0) complain('a denied call looks failed')

  home.provider.script(
    answer(call('t1', 'task', { description: 'count the trees', prompt: 'Count the trees.' })),
    answer(said('There are seven trees.')),
    answer(said('The subagent counted seven.')),
  )
  await send(page, 'Delegate it.')
  const allow = page.getByRole('button', { name: 'Allow once' })
  await allow.or(page.getByText('The subagent counted seven.')).first().waitFor()
  if (await allow.isVisible()) await allow.click()
  await page.getByText('The subagent counted seven.').waitFor()
  await untilIdle(page)
  await page.getByRole('button', { name: /task/ }).click()
  await page.locator('.subagent .mine', { hasText: 'Count the trees.' }).waitFor()
  await page.locator('.subagent .answer', { hasText: 'seven trees' }).waitFor()
  await inspect(journey, view, 'subagent')

  await page.locator('.transcript').press('?')
  const help = page.getByRole('dialog', { name: 'Keys and commands' })
  await help.waitFor()
  await inspect(journey, view, 'help')
  await page.getByRole('button', { name: 'Close' }).click()
  await page.setViewportSize({ width: 360, height: 400 })
  await page.locator('.transcript').press('?')
  const scrolled = await help.evaluate<number, { scrollTop: number }>((each) => each.scrollTop)
  if (scrolled !== 0) complain(`the help opens ${scrolled} px below its top`)
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.getByRole('button', { name: 'Close' }).click()
  await page.locator('.transcript').press('/')
  if ((await page.locator('textarea#message:focus').count()) !== 1) complain('the key / does not go to the message')
}
