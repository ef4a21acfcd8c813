import { readFile, writeFile } from 'node:fs/promises'
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

/** A command in the sandbox makes settings of an editor. They are taken back, shown, and applied when the user wants them. */
export async function blockedJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  const view = await openPaired(journey, { width: 360, scheme: 'light' })
  const { page } = view
  await newSession(journey, page)
  await page.getByLabel('Permission mode').selectOption('sandboxed')
  // The gate does not see what a script does.
  await writeFile(join(home.cwd, 'make.sh'), 'mkdir .vscode; echo "{ 1 }" > .vscode/tasks.json')
  home.provider.script(answer(call('b1', 'bash', { command: 'bash make.sh' })), answer(said('Made them.')))
  await send(page, 'Make settings for the editor.')
  await page.getByRole('button', { name: 'Leave them out' }).click()
  await page.getByText('Made them.').waitFor()
  await untilIdle(page)

  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByRole('button', { name: 'Blocked writes' }).click()
  const dialog = page.getByRole('dialog', { name: 'Blocked writes' })
  const write = dialog.getByRole('region', { name: '.vscode' })
  await write.getByText('.vscode/tasks.json').waitFor()
  await inspect(journey, view, 'blocked')
  await write.getByRole('button', { name: 'Apply' }).click()
  await dialog.getByText('The sandbox has taken back no file.').waitFor()
  const content = await readFile(join(home.cwd, '.vscode/tasks.json'), 'utf8')
  if (content !== '{ 1 }\n') complain(`an applied file has ${JSON.stringify(content)}`)
  await dialog.getByRole('button', { name: 'Close' }).click()
}
