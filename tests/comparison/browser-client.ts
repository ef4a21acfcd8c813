import { chromium } from 'playwright-core'
import { tapetree } from './contenders.ts'
import { say, Stage } from './stage.ts'

const words = Array.from({ length: 40 }, (_, index) => `word${index} `)

/** Opens the page of the example in Chromium, asks, reloads it in the middle of the answer, and returns what is wrong. */
export async function tryBrowserClient(folder: string): Promise<string[]> {
  const decide = () => ({ ...say(...words), paceMs: 60 })
  await using stage = await Stage.open(tapetree, { folder, decide })
  const server = await stage.start('examples/browser-client/server.ts', { env: { PORT: '0' } })
  if (!(await server.printed((line) => line.startsWith('http')))) return [`the server did not start: ${server.errors}`]
  await using browser = await chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  })
  const page = await browser.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`error in the page: ${error.message}`))
  await page.goto(server.lines[0] ?? '')
  await page.waitForURL(/#./)
  await page.getByRole('textbox').fill('Count.')
  await page.getByRole('button').click()
  await page.getByText('word10 ').waitFor()
  await page.reload()
  await page.getByText('word39').waitFor()
  const shown = await page.locator('p').allTextContents()
  if (JSON.stringify(shown) !== JSON.stringify(['Count.', words.join('')]))
    problems.push(`the page shows ${JSON.stringify(shown)}`)
  return problems
}
