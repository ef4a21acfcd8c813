import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  answer,
  call,
  inspect,
  newSession,
  openPaired,
  said,
  send,
  untilIdle,
  type SessionJourney,
} from './session-journey.ts'

/** A command in the background: it is listed while it runs, its output is live, and it can be stopped. */
export async function jobsJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  const view = await openPaired(journey, { width: 360, scheme: 'dark' })
  const { page } = view
  await newSession(journey, page)
  const command = 'touch job-started; echo first; until [ -e go-on ]; do sleep 0.05; done; echo second; sleep 600'
  home.provider.script(
    answer(call('j1', 'bash', { command, background: true })),
    answer(said('It runs in the background.')),
  )
  await send(page, 'Start the server.')
  await page.getByRole('button', { name: 'Allow once' }).click()
  const jobs = page.getByRole('region', { name: 'Background commands' })
  await jobs.getByText('1 command runs in the background').waitFor()
  await untilIdle(page)
  await jobs.getByRole('button', { name: '1 command runs' }).click()
  const output = jobs.getByRole('region', { name: 'Output of' })
  await output.getByText('first').waitFor()
  await writeFile(join(home.cwd, 'go-on'), '')
  await output.getByText('second').waitFor()
  await inspect(journey, view, 'jobs')
  await jobs.getByRole('button', { name: `Stop ${command}` }).click()
  await jobs.getByText('No command runs in the background').waitFor()
  if (!(await jobs.innerText()).includes('stopped')) complain(`a stopped command shows ${await jobs.innerText()}`)
  await jobs.getByRole('button', { name: 'No command runs' }).click()
  await jobs.waitFor({ state: 'detached' })
  // Those that ended are still there.
  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByRole('button', { name: 'Background commands' }).click()
  await jobs.getByText('stopped', { exact: true }).waitFor()
}
