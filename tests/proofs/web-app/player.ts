import type { Journey } from './journey.ts'

/** Steps, seeks and plays a finished session, and shows new events of a running one. */
export async function usePlayer({ page, home, base, treeId, name, look, complain }: Journey): Promise<void> {
  await page.goto(`${base}#/sessions/${treeId}/player`)
  const position = page.getByRole('slider', { name: 'Position' })
  const forward = page.getByRole('button', { name: 'Step forward' })
  await forward.click()
  await forward.click()
  await page.locator('.event', { hasText: 'How do we parse dates?' }).waitFor()
  await page.getByRole('button', { name: 'Step back' }).click()
  await page.locator('.event', { hasText: 'How do we parse dates?' }).waitFor({ state: 'detached' })
  await position.focus()
  await page.keyboard.press('End')
  await page.locator('.event', { hasText: 'Shipped.' }).waitFor()
  await look('player')
  await page.keyboard.press('Home')
  await page.getByLabel('Speed').selectOption('without pauses')
  await page.getByRole('button', { name: 'Play' }).click()
  await page.locator('.event', { hasText: 'Shipped.' }).waitFor()
  await page.getByRole('button', { name: 'Play' }).waitFor()

  home.provider.script({
    type: 'answer',
    content: [
      { type: 'text', chunks: ['Soon. '] },
      { type: 'wait', gate: `player-${name}` },
      { type: 'text', chunks: ['Now.'] },
    ],
  })
  const id = await page.evaluate<string>(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"Running","prompt":"Wait."}' }).then((each) => each.json()).then((each) => each.id)`,
  )
  await page.goto(`${base}#/sessions/${id}/player`)
  await page.locator('input[type=range]:not([max="0"])').waitFor()
  await position.focus()
  await page.keyboard.press('End')
  await page.locator('.event', { hasText: 'Wait.' }).waitFor()
  const before = Number(await position.inputValue())
  home.provider.release(`player-${name}`)
  await page.locator('.event', { hasText: 'Soon. Now.' }).waitFor()
  const shown = Number(await position.inputValue())
  if (shown <= before) complain(`a running session has ${shown} events after ${before}`)
}
