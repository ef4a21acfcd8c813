import { existsSync } from 'node:fs'
import { glob, mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { buildSite, siteFolder } from '../../scripts/site/build.ts'
import { deadLinks } from '../../scripts/site/dead-links.ts'
import { SiteBrowser } from './docs-site/site-browser.ts'
import { serveFolder } from './docs-site/static-server.ts'

export const name = 'docs-site'
export const claim =
  'The documentation site has no dead link, fits screens from 360 to 1440 px, and axe-core finds no accessibility violation.'
export const sizes = { ci: { pages: 9 }, full: { pages: Infinity } }

/** Pages that every run opens: one for each reader and each layout. */
const always = ['index', 'use', 'host', 'embed', 'extend', 'contribute', 'reference/proofs', 'api/index']
const widths = [360, 1440]
/** `SCREENSHOTS=<folder>` keeps a picture of each page that was opened. */
const screenshots = process.env['SCREENSHOTS']

/** Builds the site if its sources are newer, checks every link, and opens pages in Chromium, narrow and wide, light and dark. */
export async function run({ size, say, random }: FigureContext): Promise<FigureResult> {
  if (await isOutdated()) await buildSite({ say })
  const problems = await deadLinks(siteFolder)
  const all: string[] = []
  for await (const page of glob('**/*.html', { cwd: siteFolder, exclude: ['404.html'] }))
    all.push(page.replaceAll('\\', '/').replace(/\.html$/, ''))
  const chosen = choose(all.sort(), { count: sizes[size].pages, random })
  say(`${all.length} pages, of which ${chosen.length} are opened: ${chosen.join(', ')}`)
  if (screenshots !== undefined) await mkdir(screenshots, { recursive: true })
  let visits = 0
  await using server = await serveFolder(siteFolder)
  await using browser = await SiteBrowser.start()
  for (const { width, scheme, part } of viewsOf(size)) {
    await using view = await browser.open({ width, scheme })
    for (const page of chosen.filter((_, index) => part === 'all' || index % 2 === part)) {
      visits++
      const found = await view.visit(`${server.url}/${page}.html`)
      problems.push(...found.map((problem) => `${page} at ${width} px, ${scheme}: ${problem}`))
      const picture = `${page.replaceAll('/', '-')}-${width}-${scheme}.png`
      if (screenshots !== undefined) await view.screenshot(join(screenshots, picture))
    }
    // Colors do not matter to the search.
    if (scheme === 'dark') continue
    const results = await view.search(`${server.url}/use.html`, 'kill')
    if (results === 0) problems.push(`the search at ${width} px finds nothing`)
  }
  problems.push(...(await problemsOfLlms()))
  for (const problem of problems.slice(0, 40)) say(`PROBLEM ${problem}`)
  return { ok: problems.length === 0, figures: { pages: all.length, visits, problems: problems.length } }
}

interface View {
  width: number
  scheme: 'light' | 'dark'
  /** Which pages are opened in it: all, or those at even or odd places. */
  part: 'all' | 0 | 1
}

/** At size ci, each page is opened at both widths, light in one of them and dark in the other. */
function viewsOf(size: FigureContext['size']): View[] {
  return widths.flatMap((width, index) => [
    { width, scheme: 'light', part: size === 'full' ? 'all' : index === 0 ? 0 : 1 },
    { width, scheme: 'dark', part: size === 'full' ? 'all' : index === 0 ? 1 : 0 },
  ])
}

/** The pages of each reader, then others by chance. */
function choose(all: readonly string[], { count, random }: { count: number; random: () => number }): string[] {
  const chosen = new Set(always)
  const missing = always.filter((page) => !all.includes(page))
  if (missing.length > 0) throw new Error(`The site lacks ${missing.join(', ')}`)
  if (count === Infinity) return [...chosen.union(new Set(all))]
  // The pages of the API reference are alike and long.
  const others = all.filter((page) => !page.startsWith('api/'))
  while (chosen.size < count) chosen.add(others[Math.floor(random() * others.length)] ?? 'index')
  return [...chosen]
}

/** Whether a page, the config or a source that the API reference shows is newer than the site. */
async function isOutdated(): Promise<boolean> {
  const built = join(siteFolder, 'llms.txt')
  if (!existsSync(built)) return true
  const { mtimeMs } = await stat(built)
  const sources = glob(
    ['docs/**/*.{md,css,svg,png,json}', 'docs/.vitepress/{config,theme/*}.ts', 'packages/*/src/**/*.ts'],
    {
      exclude: ['**/node_modules/**', '**/api/**', '**/dist/**', '**/*.test.ts'],
    },
  )
  for await (const source of sources) if ((await stat(source)).mtimeMs > mtimeMs) return true
  return false
}

/** Every page that `llms.txt` names must be there as Markdown. */
async function problemsOfLlms(): Promise<string[]> {
  const text = await readFile(join(siteFolder, 'llms.txt'), 'utf8')
  const links = [...text.matchAll(/\]\(\/([^)]+)\)/g)].map((match) => match[1] as string)
  if (links.length === 0) return ['llms.txt names no page']
  return links
    .filter((link) => !existsSync(join(siteFolder, link)))
    .map((link) => `llms.txt names ${link}, which is missing`)
}
