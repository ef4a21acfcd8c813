import type { Journey } from './journey.ts'
import { deliverPush } from './served-app.ts'

/** Title and live region when a session needs its user, and a push message that the service worker shows. */
export async function useNotifications({ page, home, base, look, complain }: Journey): Promise<void> {
  const { origin } = new URL(base)
  await page.context().grantPermissions(['notifications'], { origin })
  await page.goto(`${base}#/settings/notifications`)
  await page.getByRole('button', { name: 'Turn on push messages' }).waitFor()
  await look('notifications')

  home.provider.script({
    type: 'answer',
    content: [{ type: 'tool_call', id: 'n1', name: 'bash', chunks: ['{"command":"rm -rf build"}'] }],
  })
  const id = await page.evaluate<string>(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"Clean up","prompt":"Clean."}' }).then((each) => each.json()).then((each) => each.id)`,
  )
  await page.getByText('Clean up needs you.').waitFor({ state: 'attached' })
  const seenAt = Date.now()
  const asked = await page.evaluate<string>(
    `fetch('api/sessions/${id}/events').then((each) => each.json()).then(({ events }) => events.find(({ type }) => type === 'permission_request').timestamp)`,
  )
  if (seenAt - Date.parse(asked) > limitMs) complain(`the page shows a request after ${seenAt - Date.parse(asked)} ms`)
  if (!/^\(\d+\) /.test(await page.title())) complain(`the title is ${await page.title()}`)
  await page.evaluate(
    `fetch('api/sessions/${id}/cancel', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })`,
  )

  const { title, tookMs } = await deliverPush(
    page,
    JSON.stringify({ session_id: id, name: 'Clean up', needs: 'permission' }),
  )
  if (title !== 'Clean up asks for permission') complain(`the notification says ${title}`)
  if (tookMs > limitMs) complain(`a push message is shown after ${tookMs} ms`)
}

const limitMs = 2000
