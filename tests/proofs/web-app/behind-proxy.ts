import { fakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteBrowser } from '../docs-site/site-browser.ts'
import { freePort, proxyName, startProxy, type ProxyOptions } from '../serve-path/proxies.ts'
import { answer, call, pair, ServedApp, startSession } from './served-app.ts'

/** The browser of these journeys must be started with this argument. */
export const proxyArgument = `--host-resolver-rules=MAP ${proxyName} 127.0.0.1`

interface ProxyJourney extends Pick<ProxyOptions, 'kind' | 'path' | 'folder'> {
  browser: SiteBrowser
  complain: (problem: string) => void
}

/** The whole app below a path, behind a real proxy with TLS: an answer arrives while it is written, and a request is answered. */
export async function behindProxy({ kind, path, folder, browser, complain }: ProxyJourney): Promise<void> {
  const port = await freePort()
  const publicUrl = `https://${proxyName}:${port}/agents`
  await using home = await fakeHome()
  await using app = await ServedApp.start({
    home,
    args: ['--public-url', publicUrl, '--trusted-proxy', '127.0.0.1'],
  })
  await using _proxy = await startProxy({ kind, path, folder, port, upstream: app.port })
  await using view = await browser.open({ width: 360, scheme: 'light' })
  const { page } = view
  page.setDefaultTimeout(30_000)
  page.on('request', (request) => {
    if (!request.url().startsWith(`${publicUrl}/`)) complain(`behind ${kind}, the page asked ${request.url()}`)
  })
  await pair(page, app.link)
  const gate = `${kind}-middle`
  home.provider.script(
    {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['I **begin**'] },
        { type: 'wait', gate },
        { type: 'text', chunks: [' and ask.'] },
        call('x1', 'bash', { command: 'touch hello.txt' }),
      ],
    },
    answer({ type: 'text', chunks: ['Said hello.'] }),
  )
  await startSession(page, 'Say hello.')
  // Arrives only if the proxy does not buffer: the rest is held back.
  await page.locator('.answer strong', { hasText: 'begin' }).waitFor()
  home.provider.release(gate)
  await page.getByRole('region', { name: 'Allow bash?' }).getByRole('button', { name: 'Allow once' }).click()
  await page.getByText('Said hello.').waitFor()
  await page.reload()
  await page.getByText('Said hello.').waitFor()
  if (!page.url().startsWith(`${publicUrl}/#/sessions/`)) complain(`behind ${kind}, the session is at ${page.url()}`)
}
