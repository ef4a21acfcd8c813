import { fakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { languageProject } from '../../terminal/language-project.ts'
import type { SiteBrowser, SiteView } from '../docs-site/site-browser.ts'
import { answer, call, pair, send, ServedApp, startSession, untilIdle } from './served-app.ts'

interface Options {
  browser: SiteBrowser
  complain: (problem: string) => void
  picture: (view: SiteView, name: string) => Promise<void>
}

/** The errors that the model was told are a row that opens, and the number that is left stands below the composer. */
export async function languageServers({ browser, complain, picture }: Options): Promise<void> {
  await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
  await using project = await languageProject(home)
  await using app = await ServedApp.start({ home: { ...home, cwd: project.cwd } })
  await using view = await browser.open({ width: 360, scheme: 'light' })
  const { page } = view
  page.setDefaultTimeout(30_000)
  await pair(page, app.link)
  home.provider.script(
    answer(call('c0', 'write', { path: 'a.py', content: 'good\n' })),
    answer({ type: 'text', chunks: ['I begin.'] }),
    answer(call('c1', 'write', { path: 'a.py', content: 'BAD one\nBAD two\n' })),
    answer({ type: 'text', chunks: ['Done.'] }),
    answer({ type: 'text', chunks: ['I leave them.'] }),
    answer(call('c2', 'write', { path: 'a.py', content: 'good\n' })),
    answer({ type: 'text', chunks: ['Corrected.'] }),
  )
  await startSession(page, 'Begin.')
  await page.getByText('I begin.').waitFor()
  const state = page.getByRole('group', { name: 'Next run' }).locator('.language-server')
  // A server that is only starting would answer later than a run waits on a busy machine.
  await state.getByText('pyright no errors').waitFor()
  await untilIdle(page)
  await send(page, 'Write it.')
  await page.getByText('I leave them.').waitFor()
  await untilIdle(page)
  await state.getByText('pyright 2 errors').waitFor()
  await page.getByRole('button', { name: '2 errors in a.py' }).click()
  await page.getByText('a.py:1:1 error: BAD one is bad (test)').waitFor()
  for (const problem of await view.inspect()) if (!/\b401\b/.test(problem)) complain(`language servers: ${problem}`)
  await picture(view, 'language-servers')
  await send(page, 'Correct it.')
  await page.getByText('Corrected.').waitFor()
  await state.getByText('pyright no errors').waitFor()
}
