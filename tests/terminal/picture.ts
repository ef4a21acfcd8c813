import { chromium } from 'playwright-core'
import { screenHtml } from './screen-html.ts'
import type { Cell } from './screen.ts'

/** Draws a screen with the browser of this machine and gives it as PNG. */
export async function picture(cells: readonly (readonly Cell[])[]): Promise<Buffer> {
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage({ deviceScaleFactor: 2 })
    await page.setContent(screenHtml(cells))
    return await page.locator('body').screenshot()
  } finally {
    await browser.close()
  }
}
