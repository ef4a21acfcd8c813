import { chromium } from 'playwright-core'
import { screenHtml } from './screen-html.ts'
import type { Cell } from './screen.ts'

export interface Picture {
  cells: readonly (readonly Cell[])[]
}

/** Draws a screen with the browser of this machine and gives it as PNG. */
export async function picture(cells: readonly (readonly Cell[])[]): Promise<Buffer> {
  const [png] = await pictures([{ cells }], { scale: 2 })
  if (!png) throw new Error('The browser drew nothing.')
  return png
}

/** Several screens, with pixels of this size. */
export async function pictures(screens: readonly Picture[], { scale }: { scale: number }): Promise<Buffer[]> {
  const browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage({ deviceScaleFactor: scale })
    const drawn: Buffer[] = []
    for (const { cells } of screens) {
      await page.setContent(screenHtml(cells))
      drawn.push(await page.locator('body').screenshot())
    }
    return drawn
  } finally {
    await browser.close()
  }
}
