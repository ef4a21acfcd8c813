import { text } from '@tapetree/session'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { Journey } from './journey.ts'

/** Written before the server starts: calls of two models, in two sessions. */
export async function seedUsage(home: FakeHome): Promise<void> {
  await using store = await openStore(placesOf(home))
  for (const [index, name] of ['Port the parser', 'Fix the build'].entries()) {
    await using session = await store.create({ cwd: home.cwd, name })
    for (const model of ['model-1', 'model-2']) {
      const usage = { inputTokens: 12_000, outputTokens: 800, cacheReadTokens: 9000, cost: 0.4 + index }
      await session.appendMessage('assistant', [text('ok')], { with: { provider: 'fake', model, usage } })
    }
  }
}

/** Theme, settings that may be written and that may not, devices, pairing and usage. */
export async function useSettings({ page, base, name, look, complain }: Journey): Promise<void> {
  await page.goto(`${base}#/settings`)
  const background = (): Promise<string> => page.evaluate('getComputedStyle(document.body).backgroundColor')
  await page.getByLabel('Thinking level of new sessions').waitFor()
  const colors = new Set([await background()])
  for (const theme of ['Light', 'Dark']) {
    await page.getByRole('radio', { name: theme }).check()
    colors.add(await background())
  }
  if (colors.size !== 2) complain(`the themes have the backgrounds ${[...colors].join(' ')}`)
  await page.getByRole('radio', { name: 'As the system' }).check()
  await page.getByLabel('Thinking level of new sessions').selectOption('high')
  await page.getByText('Saved. New sessions use it.').waitFor()
  await page.getByText('Read-only here').waitFor()
  await look('settings')
  await page.reload()
  const level = await page.getByLabel('Thinking level of new sessions').inputValue()
  if (level !== 'high') complain(`the thinking level is ${level} after a reload`)

  await page.getByRole('link', { name: 'Devices' }).click()
  await page.getByText('this device').waitFor()
  const device = `screen ${name}`
  await page.evaluate(
    `fetch('api/tokens', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ role: 'view', name: ${JSON.stringify(device)} }) })`,
  )
  await page.reload()
  await page.getByRole('button', { name: `Revoke ${device}` }).click()
  await page.getByRole('button', { name: 'Revoke now' }).click()
  await page.getByText(`Revoked ${device}.`).waitFor()
  await page.getByLabel('Role of the new device').selectOption('approve')
  await page.getByRole('button', { name: 'Make a link' }).click()
  await page.getByRole('img', { name: 'QR code' }).waitFor()
  const link = await page.locator('.link-line code').innerText()
  await look('devices')
  const granted = await page.evaluate<{ role?: string }>(
    `fetch('api/pair/preview', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ code: ${JSON.stringify(link.split('#pair=')[1])} }) }).then((each) => each.json())`,
  )
  if (granted.role !== 'approve') complain(`the link of the page grants ${String(granted.role)}`)

  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByText('fake/model-2').first().waitFor()
  await page.locator('summary').first().click()
  await look('usage')
  const days = await page.getByRole('region', { name: 'Usage by day' }).getByRole('row').count()
  if (days !== 2) complain(`the table of the days has ${days} rows`)
  const bar = await page.locator('.bars li', { hasText: 'Fix the build' }).innerText()
  if (!bar.includes('$2.80')) complain(`the usage of a session is ${bar}`)
  await page.goBack()
  await page.getByText('Pair another device').waitFor()
}
