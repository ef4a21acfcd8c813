import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
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

/** Goes back in the conversation and the files, takes it back, merges a conflict, and compares two branches with their files. */
export async function rewindJourney(journey: SessionJourney): Promise<void> {
  const { home, base, complain } = journey
  const view = await openPaired(journey, { width: 1440, scheme: 'dark' })
  const { page } = view
  const id = await newSession(journey, page)
  const file = join(home.cwd, 'story.txt')
  const write = async (prompt: string, content: string): Promise<void> => {
    const callId = `w${content.length}`
    home.provider.script(answer(call(callId, 'write', { path: 'story.txt', content })), answer(said(`Done: ${prompt}`)))
    await send(page, prompt)
    await page.getByRole('region', { name: 'Allow write?' }).getByRole('button', { name: 'Allow once' }).click()
    await page.getByText(`Done: ${prompt}`).waitFor()
    await untilIdle(page)
  }
  const expectFile = async (expected: string, when: string): Promise<void> => {
    const content = await readFile(file, 'utf8')
    if (content !== expected) complain(`${when}, the file is ${JSON.stringify(content)}`)
  }
  const message = page.getByLabel('Message', { exact: true })
  const dialog = page.getByRole('dialog', { name: 'Go back to here' })
  await write('Begin the story.', 'one\ntwo\nthree\n')
  await write('End the story.', 'one\ntwo\nthree\nfour\n')

  await page.locator('.mine', { hasText: 'End the story.' }).hover()
  await inspect(journey, view, 'rewind-hover')
  await goBack(page, 'End the story.')
  await dialog.getByRole('region', { name: 'Files that go back' }).getByText('story.txt').waitFor()
  await inspect(journey, view, 'rewind')
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click()
  await page.getByText('Put back 1 file: story.txt.').waitFor()
  await expectFile('one\ntwo\nthree\n', 'after going back')
  if ((await message.inputValue()) !== 'End the story.') complain(`the composer has ${await message.inputValue()}`)
  await page.getByText('Done: End the story.').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Took it back.').waitFor()
  await page.getByText('Done: End the story.').waitFor()
  await expectFile('one\ntwo\nthree\nfour\n', 'after taking it back')

  // Someone else changes the file, too.
  await writeFile(file, 'zero\none\ntwo\nthree\nfour\n')
  await message.fill('/undo')
  await message.press('Enter')
  const conflicts = dialog.getByRole('region', { name: 'Conflicts' })
  await conflicts.getByText('story.txt').waitFor()
  for (const [scheme, width] of [
    ['light', 360],
    ['light', 1440],
    ['dark', 360],
  ] as const) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme: scheme })
    await inspect(journey, view, `rewind-conflict-${width}-${scheme}`)
  }
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.emulateMedia({ colorScheme: 'dark' })
  await conflicts.getByRole('radio', { name: 'Merge' }).check()
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click()
  await page.getByText('Went back in the conversation.').waitFor()
  await expectFile('zero\none\ntwo\nthree\n', 'after a merge')
  await message.fill('/redo')
  await message.press('Enter')
  await page.getByText('Done: End the story.').waitFor()
  await message.fill('')

  await goBack(page, 'End the story.')
  await dialog.getByRole('radio', { name: /Only the conversation/ }).check()
  await dialog.getByRole('button', { name: 'Go back', exact: true }).click()
  await page.getByText('The files stay as they are.').waitFor()
  await message.fill('')
  await write('End it otherwise.', 'one\ntwo\nthree\nfive\n')
  await page.goto(`${base}#/sessions/${id}/tree`)
  await page.getByLabel('All entries').check()
  await page.getByRole('button', { name: /^Agent Done: End the story/ }).click()
  await page.getByRole('link', { name: 'Compare with the current branch' }).click()
  const files = page.getByRole('region', { name: 'Files' })
  await files.getByRole('button', { name: 'story.txt' }).click()
  await files.locator('.diff').waitFor()
  await inspect(journey, view, 'compare-files')
  const diff = await files.locator('.diff').innerText()
  if (!/five/.test(diff) || !/four/.test(diff)) complain(`two branches differ by ${JSON.stringify(diff)}`)
  await page.setViewportSize({ width: 360, height: 900 })
  await page.emulateMedia({ colorScheme: 'light' })
  await inspect(journey, view, 'compare-files-360-light')
  await page.setViewportSize({ width: 1440, height: 900 })
  await page.emulateMedia({ colorScheme: 'dark' })
}

async function goBack(page: Page, words: string): Promise<void> {
  const mine = page.locator('.mine', { hasText: words })
  await mine.hover()
  await mine.getByRole('button', { name: 'Go back to here…' }).click()
}
