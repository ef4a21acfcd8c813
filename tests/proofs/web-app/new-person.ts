import { performance } from 'node:perf_hooks'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteBrowser } from '../docs-site/site-browser.ts'
import { answer, call, ServedApp } from './served-app.ts'

/**
 * Somebody who has never seen the app: starts the server, opens the link on a phone, pairs, writes a prompt, approves a command and sees
 * the result. Uses only what the screens show. Returns the milliseconds of each step.
 */
export async function newPerson(
  browser: SiteBrowser,
  complain: (problem: string) => void,
): Promise<Record<string, number>> {
  await using home = await fakeHome()
  const steps: Record<string, number> = {}
  let last = performance.now()
  const reached = (step: string): void => {
    const now = performance.now()
    steps[`${step}_ms`] = Math.round(now - last)
    last = now
  }
  home.provider.script(
    answer({ type: 'text', chunks: ['I make the file.'] }, call('n1', 'bash', { command: 'echo made > made.txt' })),
    answer({ type: 'text', chunks: ['The file `made.txt` is there.'] }),
  )
  await using app = await ServedApp.start({ home })
  reached('serve')
  await using view = await browser.open({ width: 360, scheme: 'light' })
  const { page } = view
  page.setDefaultTimeout(30_000)
  await page.goto(app.link)
  const pairButton = page.getByRole('button', { name: 'Pair this device' })
  await pairButton.waitFor()
  reached('open')
  await pairButton.click()
  // The list is empty: the way on must be in it.
  await page.getByRole('button', { name: 'New session' }).waitFor()
  reached('pair')
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByLabel('First message').fill('Make a file.')
  await page.getByRole('button', { name: 'Create' }).click()
  const request = page.getByRole('region', { name: 'Allow bash?' })
  await request.waitFor()
  reached('prompt')
  if (!(await request.innerText()).includes('echo made > made.txt')) complain('a new person does not see the command')
  await request.getByRole('button', { name: 'Allow once' }).click()
  await page.getByText('is there.').waitFor()
  reached('result')
  if (!existsSync(join(home.cwd, 'made.txt'))) complain('the approved command of a new person did not run')
  return steps
}
