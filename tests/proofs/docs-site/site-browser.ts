import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'

interface AxeResult {
  violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[]
}

interface Layout {
  scroll: number
  width: number
  /** Sources of pictures that were not loaded. */
  pictures: string[]
}

/** As text: the types of the browser are not those of this program. */
const layoutScript = `({
  scroll: document.documentElement.scrollWidth,
  width: document.documentElement.clientWidth,
  pictures: [...document.images].filter((image) => image.complete && image.naturalWidth === 0).map((image) => image.src),
})`

/** Chromium with one context for each width and color scheme. */
export class SiteBrowser implements AsyncDisposable {
  readonly #browser: Browser
  readonly #axe: string

  private constructor(browser: Browser, axe: string) {
    this.#browser = browser
    this.#axe = axe
  }

  static async start({ args = [] }: { args?: readonly string[] } = {}): Promise<SiteBrowser> {
    const axe = await readFile(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
    const browser = await chromium.launch({
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', ...args],
    })
    return new SiteBrowser(browser, axe)
  }

  /** Accepts self-signed certificates, as a person does after comparing the fingerprint. */
  async open({ width, scheme }: { width: number; scheme: 'light' | 'dark' }): Promise<SiteView> {
    const context = await this.#browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: scheme,
      reducedMotion: 'reduce',
      ignoreHTTPSErrors: true,
    })
    return new SiteView(context, await context.newPage(), this.#axe)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }
}

/** One tab. It collects what the pages report to the console. */
export class SiteView implements AsyncDisposable {
  readonly #context: BrowserContext
  readonly #page: Page
  readonly #axe: string
  #reported: string[] = []

  constructor(context: BrowserContext, page: Page, axe: string) {
    this.#context = context
    this.#page = page
    this.#axe = axe
    page.on('pageerror', (error) => this.#reported.push(`error in the page: ${error.message}`))
    page.on('console', (message) => {
      if (message.type() === 'error') this.#reported.push(`console error: ${message.text()}`)
    })
    page.on('response', (response) => {
      if (response.status() >= 400) this.#reported.push(`${response.status()} for ${response.url()}`)
    })
  }

  get page(): Page {
    return this.#page
  }

  /** Opens a page and returns what is wrong with it. */
  async visit(url: string): Promise<string[]> {
    await this.#page.goto(url, { waitUntil: 'load' })
    await this.#page.waitForSelector('h1')
    return this.inspect()
  }

  /** What is wrong with the page as it is now, and what it reported since the last look. */
  async inspect(): Promise<string[]> {
    const problems = this.#reported
    this.#reported = []
    const { scroll, width, pictures } = await this.#page.evaluate<Layout>(layoutScript)
    if (scroll > width) problems.push(`it is ${scroll} px wide and scrolls sideways`)
    problems.push(...pictures.map((source) => `the picture ${source} is not shown`))
    return [...problems, ...(await this.#violations())]
  }

  /** How many results the search shows. */
  async search(url: string, words: string): Promise<number> {
    await this.#page.goto(url, { waitUntil: 'load' })
    await this.#page.locator('#local-search button').click()
    await this.#page.locator('.VPLocalSearchBox input').fill(words)
    await this.#page.waitForSelector('.VPLocalSearchBox .result, .VPLocalSearchBox .no-results')
    return this.#page.locator('.VPLocalSearchBox .result').count()
  }

  async screenshot(file: string): Promise<void> {
    await this.#page.screenshot({ path: file })
  }

  async #violations(): Promise<string[]> {
    await this.#page.evaluate(this.#axe)
    const { violations } = await this.#page.evaluate<AxeResult>('axe.run(document, { resultTypes: ["violations"] })')
    return violations.flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(
          (node) =>
            `axe ${id} at ${node.target.join(' ')} (${nodes.length} in all): ${node.failureSummary?.split('\n')[1]?.trim() ?? ''}`,
        ),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.close()
  }
}
