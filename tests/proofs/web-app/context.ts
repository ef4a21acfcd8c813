import type { Journey } from './journey.ts'

/** The next request, the request behind an answer, and the origin of a block. */
export async function useContext({ page, home, base, treeId, look, complain }: Journey): Promise<void> {
  await page.goto(`${base}#/sessions/${treeId}/context`)
  // The compaction replaces what was before it.
  await page.getByRole('button', { name: /We chose a small parser/ }).waitFor()
  if ((await page.getByText('How do we parse dates?').count()) > 0) complain('the context shows what was compacted')
  await look('context')
  await page.getByRole('button', { name: /Ship it/ }).click()
  await page.locator('.part-body pre', { hasText: 'Ship it.' }).waitFor()
  await page.getByRole('listitem').filter({ hasText: 'Ship it.' }).getByRole('link', { name: 'origin' }).last().click()
  await page.locator('.row', { hasText: 'Ship it.' }).waitFor()

  home.provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['A recorded answer.'] }] })
  const id = await page.evaluate<string>(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"Recorded","prompt":"Record it."}' }).then((each) => each.json()).then((each) => each.id)`,
  )
  await page.goto(`${base}#/sessions/${id}`)
  await page.getByText('A recorded answer.').waitFor()
  await page.locator('.session-head .status.idle').waitFor()
  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByRole('link', { name: 'What the model saw' }).click()
  await page.getByRole('link', { name: 'Earlier' }).click()
  await page.getByText('Verified: The request rebuilt from the log has the recorded hash.').waitFor()
  await page.getByRole('button', { name: /System prompt/ }).click()
  await look('recorded')
  await page.goBack()
  await page.getByRole('button', { name: /A recorded answer/ }).waitFor()
}
