import { text } from '@tapetree/session'
import type { Locator, Page } from 'playwright-core'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { Journey } from './journey.ts'

const sessionCount = 120

/** Written before the server starts: many sessions, a failed one, and a parent with subagents. */
export async function seedList(home: FakeHome): Promise<void> {
  await using store = await openStore(placesOf(home))
  for (let number = 0; number < sessionCount; number++) {
    await using session = await store.create({ cwd: home.cwd, name: `Old session ${number}` })
    await session.appendMessage('user', [text(`Question ${number} about the tides of the sea`)])
  }
  await using long = await store.create({ cwd: home.cwd, name: 'A haystack' })
  await long.appendMessage('user', [text('Where is the needle?')])
  for (let number = 0; number < 300; number++) await long.appendMessage('user', [text(`Straw ${number}`)])
  const away = await store.create({ cwd: home.cwd, name: 'A barn that was cleared' })
  await away.appendMessage('user', [text('The needle of the other haystack')])
  await away.close()
  await store.archive(away.id)
  await using failed = await store.create({ cwd: home.cwd, name: 'Deploy to staging' })
  await failed.appendMessage('user', [text('Deploy it.')])
  await failed.append({ type: 'run_start', runStart: { runId: 'r1', leafId: failed.leafId } })
  await failed.append({
    type: 'error',
    error: { runId: 'r1', message: 'The key for fake/model-1 was rejected.', kind: 'auth' },
  })
  await failed.append({ type: 'run_end', runEnd: { runId: 'r1', outcome: 'failed', durationMs: 1200 } })
  await using parent = await store.create({ cwd: home.cwd, name: 'Review the parser' })
  await parent.appendMessage('user', [text('Review the parser with two subagents.')])
  for (const name of ['Read the grammar', 'Run the corpus']) {
    await using child = await store.create({ cwd: home.cwd, name, parentSession: parent.id, subagent: true })
    await child.appendMessage('user', [text(name)])
  }
}

/** The list by mouse and by keyboard, search with a jump, and the way of a session to the archive, the trash and back. */
export async function useList({ page, base, name, look, complain }: Journey): Promise<void> {
  await page.goto(base)
  const failed = page.getByRole('link', { name: /^Deploy to staging/ })
  await scrollListTo(page, failed)
  const failedText = await failed.innerText()
  if (!/Failed/.test(failedText) || !failedText.includes('was rejected'))
    complain(`a failed session shows ${failedText}`)

  await page.getByRole('button', { name: '2 subagents' }).click()
  await page.getByRole('link', { name: /^Read the grammar/ }).waitFor()
  await look('sessions')
  const rows = await page.locator('#sessions > li').count()
  if (rows > 40) complain(`${rows} rows of the list are in the page`)

  await failed.focus()
  await page.keyboard.press('End')
  await page
    .getByRole('link', { name: /^(?:Old session|A long one)/ })
    .last()
    .waitFor()
  await page.keyboard.press('Home')
  await page.locator('#sessions [data-index="0"] a:focus').waitFor()
  await page.keyboard.press('ArrowDown')
  await page.locator('#sessions [data-index="1"] a:focus').waitFor()

  await page.keyboard.press('Control+k')
  await page.keyboard.type('the needle')
  await page.locator('.snippet mark', { hasText: 'needle' }).first().waitFor()
  await look('search')
  const address = page.url()
  // The match is far above the end of its session.
  await page.getByRole('link', { name: /A haystack.*needle/s }).click()
  await page.locator('.row', { hasText: 'Where is the needle?' }).waitFor()
  await page.goBack()
  if (page.url() !== address) complain(`back from a match leads to ${page.url()}`)
  const archived = page.getByRole('list', { name: 'Archived sessions' })
  await archived.getByText('A barn that was cleared').waitFor()
  await archived.getByRole('button', { name: 'Restore and open A barn' }).click()
  await page.locator('.row', { hasText: 'The needle of the other haystack' }).waitFor()
  await page.goto(base)
  const restored = page.getByRole('button', { name: 'Actions for A barn that was cleared' })
  await scrollListTo(page, restored)
  await restored.click()
  await page.getByRole('button', { name: 'Archive', exact: true }).click()
  await page.getByText('Archived “A barn that was cleared”').waitFor()

  await page.goto(`${base}#/new`)
  await page.getByRole('button', { name: 'Browse' }).click()
  await page.locator('.folder-browser button').first().waitFor()
  await look('new')
  await page.getByLabel('Model').selectOption('fake/model-1')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.waitForURL(/#\/sessions\//)
  await page.goto(`${base}#/`)

  const [first, title] = ['Untitled session', `Renamed at ${name}`]
  const newest = page.getByRole('button', { name: `Actions for ${first}` }).first()
  await scrollListTo(page, newest)
  await newest.click()
  await look('actions')
  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByLabel(`New name of ${first}`).fill(title)
  await page.keyboard.press('Enter')
  const row = page.getByRole('link', { name: new RegExp(`^${title}`) })
  const actions = page.getByRole('button', { name: `Actions for ${title}` })
  await row.waitFor()
  await actions.click()
  await page.getByRole('button', { name: 'Archive', exact: true }).click()
  await row.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await row.waitFor()
  await actions.click()
  await page.getByRole('button', { name: 'Archive', exact: true }).click()
  await row.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Archive' }).click()
  await page.getByRole('button', { name: `Restore ${title}` }).click()
  await page.getByText(`Restored “${title}”`).waitFor()
  await page.getByRole('link', { name: 'Sessions', exact: true }).click()
  await actions.click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await row.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Trash' }).click()
  await page.getByRole('button', { name: `Delete… ${title}` }).click()
  await look('trash')
  await page.getByRole('button', { name: `Delete for good: ${title}` }).click()
  await page.getByText(`Deleted “${title}” for good.`).waitFor()
  await page.goto(`${base}#/`)
}

/** The list draws the rows that can be seen and a few more, so an older session is found by scrolling. */
async function scrollListTo(page: Page, target: Locator): Promise<void> {
  const body = page.locator('.list-body')
  await page.locator('#sessions > li').first().waitFor()
  await body.evaluate((list) => list.scrollTo({ top: 0, behavior: 'instant' }))
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  for (let screens = 0; screens < 20 && (await target.count()) === 0; screens++) {
    await body.evaluate((list) => list.scrollBy({ top: list.clientHeight, behavior: 'instant' }))
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  }
}
