import { fakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteBrowser } from '../docs-site/site-browser.ts'
import { answer, inviteFrom, pair, send, ServedApp, startSession, textOf, untilIdle } from './served-app.ts'

/** The network goes and comes back, and a device sleeps: nothing is missing or twice, and what was written meanwhile is sent. */
export async function away(browser: SiteBrowser, complain: (problem: string) => void): Promise<void> {
  await using home = await fakeHome()
  await using app = await ServedApp.start({ home })
  await using phone = await browser.open({ width: 360, scheme: 'dark' })
  await using desk = await browser.open({ width: 1440, scheme: 'light' })
  for (const { page } of [phone, desk]) page.setDefaultTimeout(30_000)
  await pair(phone.page, app.link)
  await pair(desk.page, await inviteFrom(phone.page))
  const gate = 'away-middle'
  home.provider.script({
    type: 'answer',
    content: [
      { type: 'text', chunks: ['Said before. '] },
      { type: 'wait', gate },
      { type: 'text', chunks: ['Said while away.'] },
    ],
  })
  await startSession(phone.page, 'Speak.')
  await phone.page.getByText('Said before.').waitFor()
  const url = phone.page.url()
  await desk.page.goto(url)
  await desk.page.getByText('Said before.').waitFor()

  await phone.page.context().setOffline(true)
  await phone.page.getByText('Connection lost.').waitFor()
  home.provider.release(gate)
  await desk.page.getByText('Said while away.').waitFor()
  await untilIdle(desk.page)
  home.provider.script(answer({ type: 'text', chunks: ['Answered to the desk.'] }))
  await send(desk.page, 'From the desk.')
  await desk.page.getByText('Answered to the desk.').waitFor()
  await untilIdle(desk.page)
  home.provider.script(answer({ type: 'text', chunks: ['Answered to the phone.'] }))
  await phone.page.getByLabel('Message', { exact: true }).fill('Written offline.')
  await phone.page.getByRole('button', { name: /^(?:Send|Steer)$/ }).click()
  await phone.page.context().setOffline(false)
  await phone.page.getByText('Connected again').waitFor()
  await phone.page.getByText('Answered to the phone.').waitFor()
  await desk.page.getByText('Answered to the phone.').waitFor()

  // A page that sleeps runs no timers and reads no sockets.
  const session = await phone.page.context().newCDPSession(phone.page)
  await session.send('Page.setWebLifecycleState', { state: 'frozen' })
  home.provider.script(answer({ type: 'text', chunks: ['Said during the sleep.'] }))
  await untilIdle(desk.page)
  await send(desk.page, 'Speak while it sleeps.')
  await desk.page.getByText('Said during the sleep.').waitFor()
  await untilIdle(desk.page)
  await session.send('Page.setWebLifecycleState', { state: 'active' })
  await phone.page.getByText('Said during the sleep.').waitFor()
  await untilIdle(phone.page)

  const [onPhone, onDesk] = [await textOf(phone.page), await textOf(desk.page)]
  if (onPhone !== onDesk)
    complain(`a page that was away shows ${JSON.stringify(onPhone)} instead of ${JSON.stringify(onDesk)}`)
  for (const words of ['Said while away.', 'Written offline.', 'Answered to the phone.', 'Said during the sleep.']) {
    const times = onPhone.split(words).length - 1
    if (times !== 1) complain(`a page that was away shows "${words}" ${times} times`)
  }
  await phone.page.reload()
  await phone.page.getByText('Said during the sleep.').waitFor()
  if ((await textOf(phone.page)) !== onDesk) complain('a page that was away shows something else after a reload')

  const connection = phone.page.locator('#connection')
  await phone.page.goto(app.url)
  await connection.getByText('Live', { exact: true }).waitFor()
  await phone.page.context().setOffline(true)
  await connection.getByText('Connection lost').waitFor()
  await send(desk.page, '/rename Renamed while the list was away')
  await phone.page.context().setOffline(false)
  await connection.getByText('Live again after').waitFor()
  await phone.page.getByText('Renamed while the list was away').waitFor()
}
