import { text } from '@tapetree/session'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { Journey } from './journey.ts'

/** Written before the server starts: three branches, a label and a compaction. Returns the id of the session. */
export async function seedTree(home: FakeHome): Promise<{ treeId: string }> {
  await using store = await openStore(placesOf(home))
  await using session = await store.create({ cwd: home.cwd, name: 'Three ways' })
  const answer = (words: string, cost: number): Promise<string> =>
    session.appendMessage('assistant', [text(words)], {
      with: { provider: 'fake', model: 'model-1', usage: { inputTokens: 900, outputTokens: 60, cost } },
    })
  await session.appendMessage('user', [text('How do we parse dates?')])
  const fork = await answer('There are three ways to parse dates.', 0.01)
  await session.setLabel(fork, 'the choice')
  await session.appendMessage('user', [text('Try a regular expression.')])
  await answer('The regular expression fails for leap years.', 0.02)
  await session.branch(fork)
  await session.appendMessage('user', [text('Try a library.')])
  await answer('The library adds 40 KB.', 0.03)
  await session.branch(fork)
  await session.appendMessage('user', [text('Write a small parser.')])
  const last = await answer('The parser has 60 lines and passes all tests.', 0.04)
  await session.appendCompaction('We chose a small parser.', last, 5000)
  await session.appendMessage('user', [text('Ship it.')])
  await answer('Shipped.', 0.01)
  return { treeId: session.id }
}

/** Selects an entry, labels it, compares two branches, and branches from an earlier one. */
export async function useTree({ page, base, treeId, name, look, complain }: Journey): Promise<void> {
  await page.goto(`${base}#/sessions/${treeId}`)
  await page.getByText('Shipped.').waitFor()
  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByRole('link', { name: 'Tree', exact: true }).click()
  await page.getByRole('button', { name: /Ship it/ }).waitFor()
  await look('tree')
  const rows = await page.locator('.tree-row').count()
  await page.getByLabel('All entries').check()
  await page.getByRole('button', { name: /^Agent Shipped/ }).waitFor()
  if ((await page.locator('.tree-row').count()) <= rows) complain('all entries are not more than the usual ones')

  await page.getByRole('button', { name: /^Agent The library/ }).click()
  const label = `library ${name}`
  await page.getByLabel('Label').fill(label)
  await page.getByRole('button', { name: 'Save label' }).click()
  await page.locator('.tree-row .tag', { hasText: label }).waitFor()
  await look('tree-entry')
  await page.getByRole('link', { name: 'Compare with the current branch' }).click()
  await page.getByRole('region', { name: 'Second branch' }).getByText('The library adds 40 KB.').waitFor()
  await look('compare')
  const costs = await page.locator('.sides dd', { hasText: '$' }).allInnerTexts()
  if (costs.join() !== '$0.0500,$0.0300') complain(`the branches cost ${costs.join()}`)
  await page.getByRole('link', { name: 'this entry' }).click()
  await page.getByText('There are three ways to parse dates.').waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'Back to the tree' }).click()

  await page.getByLabel('All entries').check()
  await page.getByRole('button', { name: /^Agent The regular/ }).click()
  await page.getByRole('button', { name: 'Branch from here' }).click()
  await page.locator('.row', { hasText: 'fails for leap years' }).waitFor()
  // Back to the branch that other screens expect.
  await page.goto(`${base}#/sessions/${treeId}/tree`)
  await page
    .getByRole('button', { name: /Shipped|Ship it/ })
    .last()
    .click()
  await page.getByRole('button', { name: 'Branch from here' }).click()
  await page.locator('.row', { hasText: 'Shipped.' }).waitFor()
}
