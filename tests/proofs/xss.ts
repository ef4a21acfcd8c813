import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { buildCli } from '../../scripts/build-cli.ts'
import { buildWeb } from '../../scripts/build-web.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { SiteBrowser } from './docs-site/site-browser.ts'
import { answer, call, inviteFrom, pair, ServedApp } from './web-app/served-app.ts'
import {
  prepareScreens,
  pushHostile,
  screens,
  showScreen,
  writeHostileScreens,
  type HostileScreens,
  type ScreenName,
} from './xss/hostile-screens.ts'
import { placeNames, writeAnswers, writeHostileSessions } from './xss/hostile-sessions.ts'
import { MutantBuild, mutants, type Mutant } from './xss/mutants.ts'
import { PageGuard } from './xss/page-guard.ts'
import { allPayloads, type Payload } from './xss/payloads.ts'

export const name = 'xss'
export const claim =
  'Hostile text runs no code in the web app and causes no request: in every place of a session and on every ' +
  'screen, whole, while it is streamed, and cut.'
export const sizes = {
  ci: { payloads: 520, streamed: 520, cut: 0 },
  full: { payloads: Infinity, streamed: Infinity, cut: Infinity },
}

/** A mistake that shows nothing for so long is not caught. */
const patienceMs = 15_000
/** Rows that are shown at once. */
const atOnce = 60
/** So few that a page shows all of them without loading older ones. */
const cutsPerSession = 120
/** High enough for all of them, so that the virtual list draws each. */
const viewport = { width: 1000, height: 9000 }

/** The real server with the real policy, and Chromium. A guard in the page sees each element at the moment it is made. */
export async function run({ size, seed, say, random }: FigureContext): Promise<FigureResult> {
  await buildCli()
  await buildWeb()
  await using sink = await Sink.start()
  const all = allPayloads(sink.origin)
  const limits = sizes[size]
  const payloads = sample(all, limits.payloads, random)
  await using home = await fakeHome()
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    if (problems.length <= 20) say(`PROBLEM (seed ${seed}) ${problem.slice(0, 500)}`)
  }
  const sessions = await writeHostileSessions(home, { payloads, perSession: atOnce / 2 })
  const onScreens = sample(payloads, 100, random)
  const written = await writeHostileScreens(home, onScreens)
  const mutantSession = await writeAnswers(home, mutantTexts(all))
  const cuts = limits.cut === 0 ? [] : [...new Set(payloads.flatMap(({ text }) => prefixesOf(text)))]
  const cutSessions: string[] = []
  for (let start = 0; start < cuts.length; start += cutsPerSession)
    cutSessions.push(await writeAnswers(home, cuts.slice(start, start + cutsPerSession)))
  say(`${payloads.length} payloads in ${placeNames.length} places of ${sessions.length} sessions`)

  await using app = await ServedApp.start({ home })
  await using browser = await SiteBrowser.start()
  await using view = await browser.open({ width: viewport.width, scheme: 'light' })
  const { page } = view
  await page.setViewportSize(viewport)
  page.setDefaultTimeout(30_000)
  const guard = await PageGuard.on(page, new URL(app.url).origin)
  const check = async (where: string): Promise<void> => {
    for (const problem of await guard.take()) complain(`${where}: ${problem}`)
    for (const asked of sink.take()) complain(`${where}: a request left to ${asked}`)
  }
  await pair(page, app.link)
  await page.locator('#sessions li').first().waitFor()
  await check('the list')
  for (const problem of await policyProblems(page, app)) complain(problem)
  sink.take()

  let rows = 0
  for (const { id } of sessions) {
    await page.goto(app.sessionUrl(id))
    rows += await readAll(page)
    await check(`session ${id}`)
  }
  if (rows < payloads.length) complain(`only ${rows} rows were drawn for ${payloads.length} payloads`)
  say(`whole: ${rows} rows drawn`)

  const streamed = sample(payloads, limits.streamed, random)
  const steps = await stream({ page, app, sessionId: sessions[0]?.id ?? '', payloads: streamed, check })
  say(`streamed: ${streamed.length} payloads, one character at a time, in ${steps} frames`)

  let cutRows = 0
  for (const [index, id] of cutSessions.entries()) {
    await page.goto(app.sessionUrl(id))
    cutRows += await readAll(page)
    await check(`cut texts of session ${id}`)
    if (index % 100 === 99) say(`cut: ${cutRows} rows of ${index + 1} of ${cutSessions.length} sessions`)
  }
  if (cutRows < cuts.length) complain(`only ${cutRows} rows were drawn for ${cuts.length} cut texts`)
  if (cuts.length > 0) say(`cut: ${cuts.length} texts, each payload ending at every place`)

  await askPermission({ page, app, home, payloads, check })
  say('permission requests and questions')

  const changed = await prepareScreens(page, { home, titled: written.titled, payloads: onScreens })
  const hostile = { ...written, changed }
  let shown = 0
  for (const name of Object.keys(screens) as ScreenName[]) {
    shown += await showScreen(page, { name, url: app.url, hostile })
    await check(name)
  }
  const pushed = onScreens.filter(({ text }) => /^[ -~]{1,60}$/.test(text)).slice(0, 5)
  const titles = await pushHostile(page, { url: app.url, payloads: pushed })
  if (titles.length < pushed.length) complain(`${pushed.length} push messages show only ${titles.join('; ')}`)
  await check('notifications')
  say(`${Object.keys(screens).length} other screens with ${shown} payloads, and ${titles.length} notifications`)

  const link = (): Promise<string> => inviteFrom(page)
  const caught = await catchMutants({
    app,
    link,
    sessionId: mutantSession,
    hostile,
    sink,
    complain,
  })
  say(`${caught} of ${mutants.length} broken renderers caught`)
  const figures = {
    payloads: payloads.length,
    distinct: new Set(payloads.map(({ text }) => text)).size,
    places: placeNames.length,
    screens: Object.keys(screens).length,
    rows,
    on_screens: shown,
    frames: steps,
    cuts: cuts.length,
    mutants_caught: caught,
    requests_left: sink.total,
    problems: problems.length,
  }
  return { ok: problems.length === 0 && payloads.length >= 500 && sink.total === 0, figures }
}

/** Answers nothing and notes every connection. */
class Sink implements AsyncDisposable {
  readonly #server: Server
  #seen: string[] = []
  /** Requests that were not taken back by `forget`. */
  total = 0

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(): Promise<Sink> {
    const server = createServer((request, response) => {
      sink.#seen.push(request.url ?? '')
      sink.total++
      response.writeHead(204, { 'access-control-allow-origin': '*' }).end()
    })
    const sink = new Sink(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return sink
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  take(): string[] {
    return this.#seen.splice(0)
  }

  /** Those that were meant: of a broken page. */
  forget(): string[] {
    this.total -= this.#seen.length
    return this.take()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** At most so many, some of every family, in an order that depends on the seed. */
function sample(all: readonly Payload[], count: number, random: () => number): Payload[] {
  if (all.length <= count) return [...all]
  const shuffled = all
    .map((payload) => ({ payload, order: random() }))
    .toSorted((left, right) => left.order - right.order)
    .map(({ payload }) => payload)
  const firsts = [...Map.groupBy(shuffled, ({ family }) => family).values()].flatMap((some) => some.slice(0, 2))
  return [...new Set([...firsts, ...shuffled])].slice(0, count)
}

/** Enough for every mutant, and few enough to be drawn at once: some plain HTML, and some of everything else. */
function mutantTexts(all: readonly Payload[]): string[] {
  return all
    .filter(({ family, text }, index) =>
      family === 'html' ? index % 2 === 0 : text.includes('onmouseover="') || index % 30 === 0,
    )
    .map(({ text }) => text)
    .toReversed()
}

function prefixesOf(text: string): string[] {
  return Array.from({ length: text.length - 1 }, (_, index) => text.slice(0, index + 1))
}

/** The policy does its work even if a script gets into the page: inline code, code from text and other origins are stopped. */
async function policyProblems(page: Page, app: ServedApp): Promise<string[]> {
  const response = await page.request.get(app.url)
  const policy = response.headers()['content-security-policy'] ?? ''
  const directives = new Map(policy.split(';').map((each) => [each.trim().split(/\s+/)[0] ?? '', each.trim()]))
  const scripts = directives.get('script-src') ?? ''
  const problems: string[] = []
  if (directives.get('default-src') !== "default-src 'none'") problems.push(`the policy allows by default: ${policy}`)
  if (/unsafe|\*|data:|blob:|https?:/.test(scripts) || scripts === '')
    problems.push(`the policy allows scripts: ${scripts}`)
  if (!policy.includes("require-trusted-types-for 'script'")) problems.push('the policy lets text become markup')
  const tried = await page.evaluate<Record<string, string>>(intrusions(app.url))
  for (const [what, outcome] of Object.entries(tried))
    if (outcome !== 'stopped') problems.push(`the policy does not stop ${what}: ${outcome}`)
  await page.evaluate('xssReports.splice(0)')
  return problems
}

/** Scripts that are already in the page. Each tries one thing that text could try. */
function intrusions(url: string): string {
  return `(async () => {
    // Code that the debugger evaluates is exempt from the policy; what it calls later is not.
    await new Promise((done) => setTimeout(done))
    const tried = {}
    const attempt = async (what, work) => {
      try { tried[what] = (await work()) ?? 'done' } catch { tried[what] = 'stopped' }
    }
    await attempt('markup from text', () => void (document.createElement('div').innerHTML = '<b>x</b>'))
    await attempt('code from text', () => void new Function('return 1')())
    await attempt('inline handlers', () => {
      const element = document.createElement('div')
      element.setAttribute('onclick', 'globalThis.intruded = true')
      element.click()
      return globalThis.intruded ? 'it ran' : 'stopped'
    })
    await attempt('requests elsewhere', () => fetch(${JSON.stringify(url.replace('127.0.0.1', 'localhost'))}).then(() => 'answered'))
    await attempt('images from data', () => new Promise((done) => {
      const image = new Image()
      image.onload = () => done('loaded')
      image.onerror = () => done('stopped')
      image.src = 'data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"/>'
    }))
    return tried
  })()`
}

/**
 * Unfolds everything and scrolls to the beginning, but not past entries that are still being loaded. Returns the number of rows that were
 * drawn.
 */
async function readAll(page: Page): Promise<number> {
  await page
    .locator('.transcript .row')
    .first()
    .waitFor()
    .catch(async (cause: unknown) => {
      throw new Error(`No row is shown: ${(await page.locator('body').innerText()).slice(0, 1000)}`, { cause })
    })
  return page.evaluate<number>(`(async () => {
    document.documentElement.style.visibility = 'hidden' // Painting takes most of the time.
    const place = document.querySelector('.transcript')
    const seen = new Set()
    const frame = () => new Promise(requestAnimationFrame)
    let still = 0
    let height = 0
    while (still < 4) {
      for (const fold of place.querySelectorAll('button[aria-expanded="false"]:enabled')) fold.click()
      await frame()
      const before = seen.size
      for (const row of place.querySelectorAll('.row')) {
        // Numbers change when older rows are added above.
        seen.add(place.scrollHeight - (row.offsetTop + new DOMMatrix(getComputedStyle(row).transform).f) + '/' + row.textContent.slice(0, 40))
      }
      const unloaded = place.querySelector('.unloaded')?.getBoundingClientRect()
      const isLoading = unloaded !== undefined && unloaded.bottom > place.getBoundingClientRect().top
      // In small steps: the app does not load what lies between two far places.
      if (!isLoading) place.scrollTop = Math.max(0, place.scrollTop - 1000)
      await frame()
      const isDone = unloaded === undefined && place.scrollTop === 0 && place.scrollHeight === height && seen.size === before
      height = place.scrollHeight
      still = isDone ? still + 1 : 0
    }
    document.documentElement.style.visibility = ''
    return seen.size
  })()`)
}

interface Checked {
  page: Page
  app: ServedApp
  check: (where: string) => Promise<void>
}

/**
 * Gives the page text in flight, on the socket that the real server answers: many payloads at once, one more character of each in every
 * frame. Returns the number of frames.
 */
async function stream({
  page,
  app,
  sessionId,
  payloads,
  check,
}: Checked & { sessionId: string; payloads: readonly Payload[] }): Promise<number> {
  await page.goto('about:blank')
  await page.goto(app.sessionUrl(sessionId))
  await page.locator('.transcript .row').first().waitFor()
  // Those of similar length together.
  const sorted = payloads.toSorted((left, right) => left.text.length - right.text.length)
  let frames = 0
  for (let start = 0; start < sorted.length; start += atOnce) {
    const texts = sorted.slice(start, start + atOnce).map(({ text }) => text)
    const shown = await page.evaluate<number>(`(${streamScript})(${JSON.stringify({ sessionId, start, texts })})`)
    if (shown < texts.length) throw new Error(`Of ${texts.length} texts in flight, only ${shown} are drawn.`)
    await check(`streamed payloads ${start} to ${start + texts.length}`)
    frames += Math.max(...texts.map(({ length }) => length))
  }
  return frames
}

/** In the page. The app draws once a frame, and was asked to before this script was. */
const streamScript = `async ({ sessionId, start, texts }) => {
  document.documentElement.style.visibility = 'hidden' // Painting takes most of the time.
  const socket = xssSockets.findLast(({ url }) => url.endsWith('/sessions/' + sessionId + '/ws'))
  const say = (type, index, off, text) => {
    const data = { item: 'live-' + (start + index), part: 0, kind: 'text', off, text }
    socket.dispatchEvent(new MessageEvent('message', { data: JSON.stringify({ type, data }) }))
  }
  const longest = Math.max(...texts.map(({ length }) => length))
  for (let at = 0; at < longest; at++) {
    for (const [index, text] of texts.entries()) if (at < text.length) say('delta', index, at, text[at])
    await new Promise(requestAnimationFrame)
  }
  const shown = document.querySelectorAll('.answer[aria-busy="true"]').length
  for (const index of texts.keys()) say('partial', index, 0, '')
  document.documentElement.style.visibility = ''
  await new Promise(requestAnimationFrame)
  return shown
}`

/** A model asks for hostile commands, edits and answers; each request is shown, and denied. */
async function askPermission({
  page,
  app,
  home,
  payloads,
  check,
}: Checked & { home: FakeHome; payloads: readonly Payload[] }): Promise<void> {
  // A command has no null characters.
  const texts = payloads.map(({ text }) => text.replaceAll('\0', '').toWellFormed())
  const share = Math.ceil(Math.min(texts.length, 500) / 5)
  const lines = (part: number): string => texts.slice(part * share, (part + 1) * share).join('\n')
  home.provider.script(
    answer(call('p1', 'bash', { command: `echo ${lines(0)}` })),
    answer(call('p2', 'write', { path: `${home.cwd}/<img src=x onerror=alert(1)>.txt`, content: lines(1) })),
    answer(call('p3', 'bash', { command: lines(2) })),
    answer(
      call('p4', 'ask_user', {
        question: lines(3).slice(0, 2000),
        options: texts.slice(0, 4).map((label) => ({ label: label.slice(0, 80), description: label.slice(0, 80) })),
      }),
    ),
    answer({ type: 'text', chunks: texts.slice(0, 20) }),
  )
  await page.goto(app.url)
  const { id } = await page.evaluate<{ id: string }>(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(
      JSON.stringify({ prompt: `Do as you are told.\n${lines(4)}` }),
    )} }).then((response) => response.json())`,
  )
  await page.goto(app.sessionUrl(id))
  for (const title of ['Allow bash?', 'Allow write?', 'Allow bash?', 'The agent asks']) {
    const request = page.getByRole('region', { name: title })
    await request.waitFor().catch(async (cause: unknown) => {
      throw new Error(`There is no "${title}": ${(await page.locator('main').innerText()).slice(-1000)}`, { cause })
    })
    await check(title)
    if (title === 'The agent asks') await request.getByRole('button', { name: 'No answer' }).click()
    else {
      await request.getByRole('button', { name: 'Deny with a note' }).click()
      await request.getByRole('button', { name: 'Do not allow' }).click()
    }
  }
  await page.locator('.session-head .status.idle').waitFor()
  await readAll(page)
  await check('after the requests')
}

interface MutantHunt {
  app: ServedApp
  /** A link that pairs another device. */
  link: () => Promise<string>
  sessionId: string
  hostile: HostileScreens
  sink: Sink
  complain: (problem: string) => void
}

/** A proof that finds nothing is worth nothing: it must find each of these mistakes. */
async function catchMutants({ app, link, sessionId, hostile, sink, complain }: MutantHunt): Promise<number> {
  await using build = await MutantBuild.make()
  // A page that does not come from the server itself may otherwise not open a socket to this machine.
  const features = 'LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets'
  await using browser = await SiteBrowser.start({ args: [`--disable-features=${features}`] })
  await using view = await browser.open({ width: viewport.width, scheme: 'light' })
  await pair(view.page, await link())
  await view.page.goto('about:blank')
  let caught = 0
  for (const mutant of mutants) {
    // One paired browser, and a page for each mutant: nothing that one did is taken for the next.
    const page = await view.page.context().newPage()
    await page.setViewportSize(viewport)
    await build.load(page, mutant)
    const guard = await PageGuard.on(page, new URL(app.url).origin)
    if (await isCaught({ mutant, page, guard, app, sessionId, hostile, sink })) caught++
    else complain(`the mutant "${mutant.name}" was not caught`)
    await page.close()
  }
  return caught
}

interface MutantPage extends Pick<MutantHunt, 'app' | 'sessionId' | 'hostile' | 'sink'> {
  mutant: Mutant
  page: Page
  guard: PageGuard
}

async function isCaught({ mutant, page, guard, app, sessionId, hostile, sink }: MutantPage): Promise<boolean> {
  const url = app.url
  if (mutant.screen === undefined) await page.goto(app.sessionUrl(sessionId))
  // A broken screen may not show what a whole one does.
  else void showScreen(page, { name: mutant.screen, url, hostile }).catch(() => undefined)
  if (mutant.name === 'no policy') return (await policyProblems(page, app)).length > 0
  const end = performance.now() + patienceMs
  while (performance.now() < end) {
    const found = [...(await guard.take().catch(() => [])), ...sink.forget()]
    if (found.length > 0) return true
  }
  return false
}
