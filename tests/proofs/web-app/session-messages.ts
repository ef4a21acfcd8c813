import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  answer,
  inspect,
  newSession,
  openPaired,
  said,
  send,
  untilIdle,
  type Look,
  type SessionJourney,
} from './session-journey.ts'

const looks: Look[] = [
  { width: 1440, scheme: 'dark' },
  { width: 360, scheme: 'light' },
]

/** Messages during a run are queued, edited, moved by keys and by dragging, held, released and removed. */
export async function queueJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  for (const look of looks) {
    const view = await openPaired(journey, look)
    const { page } = view
    await newSession(journey, page)
    home.provider.script({
      type: 'answer',
      content: [said('Working on it now. '), { type: 'wait', gate: `queue-${look.width}` }, said(' Done.')],
    })
    await send(page, 'Begin.')
    await page.getByText('Working on it').waitFor()
    for (const words of ['first', 'second', 'third']) {
      await send(page, words, /^Queue$/)
      await page.locator('.queued', { hasText: words }).waitFor()
    }
    const order = async (): Promise<string> => (await page.locator('.queued .plain').allInnerTexts()).join()
    const expectOrder = async (expected: string): Promise<void> => {
      for (let frames = 0; frames < 300 && (await order()) !== expected; frames++)
        await page.evaluate('new Promise(requestAnimationFrame)')
      if ((await order()) !== expected) complain(`the queue is ${await order()} instead of ${expected}`)
    }
    await page.getByRole('button', { name: 'Move third', exact: true }).press('ArrowUp')
    await expectOrder('first,third,second')
    const from = await page.getByRole('button', { name: 'Move first', exact: true }).boundingBox()
    const to = await page.getByRole('button', { name: 'Move second', exact: true }).boundingBox()
    if (!from || !to) return complain('the queue has no handles')
    await page.mouse.move(from.x + 10, from.y + 10)
    await page.mouse.down()
    await page.mouse.move(to.x + 10, to.y + to.height, { steps: 4 })
    await page.mouse.up()
    await expectOrder('third,second,first')
    await page.getByRole('button', { name: 'Edit second' }).click()
    await page.getByLabel('Queued message').fill('second, edited')
    await page.getByRole('button', { name: 'Save' }).click()
    await expectOrder('third,second, edited,first')
    await page.getByRole('button', { name: 'Hold third' }).click()
    await page.getByRole('button', { name: 'Release third' }).waitFor()
    await inspect(journey, view, `queue-${look.width}`)
    for (const words of ['third', 'first']) {
      await page.getByRole('button', { name: `Remove ${words}` }).click()
      await page.locator('.queued', { hasText: words }).waitFor({ state: 'detached' })
    }
    home.provider.script(answer(said('Got the second.')))
    home.provider.release(`queue-${look.width}`)
    await page.getByText('Got the second.').waitFor()
    await untilIdle(page)
    if ((await page.locator('.mine', { hasText: 'second, edited' }).count()) !== 1)
      complain('the edited message was not delivered once')
  }
}

/** Attachments, commands, files and drafts. */
export async function composerJourney(journey: SessionJourney): Promise<void> {
  const { home, complain } = journey
  await writeFile(join(home.cwd, 'notes.md'), 'notes\n')
  for (const look of looks) {
    const view = await openPaired(journey, look)
    const { page } = view
    await newSession(journey, page)
    const message = page.getByLabel('Message', { exact: true })
    await message.fill('/com')
    await page.getByRole('option', { name: /\/compact/ }).waitFor()
    await inspect(journey, view, `commands-${look.width}`)
    await message.fill('/rename')
    // Without the list, Tab would leave the field.
    await page.getByRole('option', { name: /\/rename/ }).waitFor()
    // A person types on before the next frame is drawn.
    await page.evaluate(`{
      const draw = requestAnimationFrame
      globalThis.requestAnimationFrame = (work) => setTimeout(() => draw(work), 300)
      globalThis.drawAtOnce = () => void (globalThis.requestAnimationFrame = draw)
    }`)
    await message.press('Tab')
    await message.pressSequentially('A new name')
    if ((await message.inputValue()) !== '/rename A new name')
      complain(`typing after a completion gives ${await message.inputValue()}`)
    await page.evaluate('drawAtOnce()')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.locator('.session-head h1', { hasText: 'A new name' }).waitFor()
    await message.fill('Look at @not')
    await page.getByRole('option', { name: '@notes.md' }).click()
    if ((await message.inputValue()) !== 'Look at @notes.md ')
      complain(`a file is completed as ${await message.inputValue()}`)
    const [picture, text] = [Buffer.from(onePixel, 'base64'), Buffer.from('first line\n')]
    await page.getByLabel('Files to attach').setInputFiles([
      { name: 'dot.png', mimeType: 'image/png', buffer: picture },
      { name: 'log.txt', mimeType: 'text/plain', buffer: text },
      { name: 'x.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0xff, 0xfe, 0]) },
    ])
    await page.getByText('x.bin is neither text nor an image.').waitFor()
    await page.getByRole('button', { name: 'Dismiss' }).click()
    await page.locator('.attachments li').nth(1).waitFor()
    await page.reload()
    await page.locator('.attachments li').nth(1).waitFor()
    if ((await message.inputValue()) !== 'Look at @notes.md ') complain('the draft is lost by a reload')
    await inspect(journey, view, `composer-${look.width}`)
    home.provider.script(answer(said('I see them.')))
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('I see them.').waitFor()
    await untilIdle(page)
    const mine = page.locator('.mine')
    if (!(await mine.innerText()).includes('File log.txt:')) complain('the text file is not in the message')
    await mine.locator('img').waitFor()
    await inspect(journey, view, `sent-${look.width}`)
    await page.evaluate(`Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }`)
    await message.fill('No place for this.')
    await page.getByText('This browser cannot store your draft').waitFor()
    await page.reload()
  }
}

const onePixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='
