import { text } from '@tapetree/session'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { openStore } from '../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../packages/cli/src/host/places.ts'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { buildCli } from '../../scripts/build-cli.ts'
import { webAppFolder } from '../../scripts/build-web.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { SiteBrowser, type SiteView } from './docs-site/site-browser.ts'
import type { ProxyOptions } from './serve-path/proxies.ts'
import { away } from './web-app/away.ts'
import { behindProxy, proxyArgument } from './web-app/behind-proxy.ts'
import { newPerson } from './web-app/new-person.ts'
import { answer, call, inviteFrom, pair, send, ServedApp, textOf } from './web-app/served-app.ts'
import { together } from './web-app/together.ts'
import { useContext } from './web-app/context.ts'
import { languageServers } from './web-app/language-servers.ts'
import { seedList, useList } from './web-app/list.ts'
import { useNotifications } from './web-app/notifications.ts'
import { usePlayer } from './web-app/player.ts'
import { push } from './web-app/push.ts'
import { seedUsage, useSettings } from './web-app/settings.ts'
import { sessionJourneys, writeLongSession } from './web-app/session-journeys.ts'
import { seedTree, useTree } from './web-app/tree.ts'

export const name = 'web-app'
export const claim =
  'The web app drives a session from a phone: pair, prompt, watch the answer, approve, reload, survive kill -9 of the server. It loads ' +
  'at most 200 KB of script until the list shows and 350 KB until a session does, and axe-core finds no violation.'
export const sizes = {
  ci: { looks: 2, races: 2, proxies: 1, messages: 20_000 },
  full: { looks: 4, races: 20, proxies: 4, messages: 100_000 },
}

/** `SCREENSHOTS=<folder>` keeps a picture of each screen. */
const screenshots = process.env['SCREENSHOTS']

/** Gzipped script, in KB. */
const limits = { list: 200, session: 350 }

const looks = [
  { width: 1440, scheme: 'dark' },
  { width: 360, scheme: 'light' },
  { width: 360, scheme: 'dark' },
  { width: 1440, scheme: 'light' },
] as const

/** Runs the built command, and does in Chromium what a person does. */
export async function run({ size, say, random, temporaryFolder }: FigureContext): Promise<FigureResult> {
  if (screenshots !== undefined) await mkdir(screenshots, { recursive: true })
  // The command has a copy of the web app.
  await buildCli()
  const problems: string[] = []
  const complain = (problem: string): void => {
    problems.push(problem)
    say(`PROBLEM ${problem}`)
  }
  const steps: Record<string, number> = {}
  const sizesOfScript = await scriptSizes()
  for (const [screen, kilobytes] of Object.entries(sizesOfScript))
    if (kilobytes > limits[screen as keyof typeof limits]) complain(`the ${screen} loads ${kilobytes} KB of script`)

  await using home = await fakeHome()
  await writeFile(join(home.cwd, 'greet.txt'), 'hello world\nsecond line\n')
  await seedUsage(home)
  const { treeId } = await seedTree(home)
  await seedList(home)
  const longId = await longSession(home)
  const veryLong = await writeLongSession(home, sizes[size].messages)
  let app = await ServedApp.start({ home })
  try {
    await using browser = await SiteBrowser.start({
      args: [proxyArgument],
    })
    await using phone = await browser.open({ width: 360, scheme: 'light' })
    const { page } = phone
    page.setDefaultTimeout(15_000)
    watchRequests(page, app.port, complain)
    await using _picture = { [Symbol.asyncDispose]: () => pictureOf(phone, 'last') }
    await pair(page, app.link)
    await converse({ page, home, say, complain })
    const before = await textOf(page)
    await page.reload()
    await page.getByText('All done.').waitFor()
    const after = await textOf(page)
    if (after !== before)
      complain(`after a reload the session shows ${JSON.stringify(after)} instead of ${JSON.stringify(before)}`)
    say('reloaded')
    app = await surviveKill({ page, home, app, complain })
    say('survived kill -9')
    const url = page.url()
    await scrollFar({ page, url: `${url.slice(0, url.indexOf('#'))}#/sessions/${longId}`, complain })
    await page.goto(url)
    await page.locator('.session-head .status.idle').waitFor()
    say('scrolled')
    const base = url.slice(0, url.indexOf('#'))
    await sessionJourneys({ browser, home, phone: page, base, say, complain, picture: pictureOf }, veryLong)
    for (const look of looks.slice(0, sizes[size].looks)) {
      await using view = await browser.open(look)
      await inspect(view, {
        home,
        url: page.url(),
        phone: page,
        complain,
        treeId,
        name: `${look.width}-${look.scheme}`,
      })
    }
    say('looked at every screen')
    Object.assign(steps, await newPerson(browser, complain))
    say(`a new person: ${JSON.stringify(steps)}`)
    const others = [
      together({ browser, races: sizes[size].races, random, complain }).then(() => say('two browsers and a terminal')),
      push(browser, complain).then(() => say('pushed from a record to a notification')),
      languageServers({ browser, complain, picture: pictureOf }).then(() => say('errors of a language server')),
      // Spends most of its time waiting for a silent connection to count as lost.
      away(browser, complain).then(() => say('offline, asleep and back')),
      ...chosenProxies(sizes[size].proxies, random).map(async (proxy) => {
        await behindProxy({ ...proxy, folder: await temporaryFolder(), browser, complain })
        say(`behind ${proxy.kind}, path ${proxy.path}`)
      }),
    ]
    await Promise.all(others)
  } finally {
    await app[Symbol.asyncDispose]()
  }
  return { ok: problems.length === 0, figures: { ...sizesOfScript, ...steps, problems: problems.length } }
}

/** The first so many, in an order that depends on the seed. */
function chosenProxies(count: number, random: () => number): Pick<ProxyOptions, 'kind' | 'path'>[] {
  const all = (['nginx', 'caddy'] as const).flatMap((kind) =>
    (['kept', 'removed'] as const).map((path) => ({ kind, path })),
  )
  const start = Math.floor(random() * all.length)
  return [...all.slice(start), ...all.slice(0, start)].slice(0, count)
}

async function pictureOf(view: SiteView, screen: string): Promise<void> {
  if (screenshots !== undefined) await view.screenshot(join(screenshots, `${screen}.png`))
}

/** What a browser loads until the list shows, and until a session does. */
async function scriptSizes(): Promise<{ list: number; session: number }> {
  const manifest = JSON.parse(await readFile(join(webAppFolder, 'manifest.json'), 'utf8')) as Record<
    string,
    { file: string; imports?: string[] }
  >
  const filesFrom = (entry: string): string[] => [
    ...new Set([manifest[entry]?.file ?? '', ...(manifest[entry]?.imports ?? []).flatMap(filesFrom)]),
  ]
  const kilobytes = async (files: Iterable<string>): Promise<number> => {
    let bytes = 0
    for (const file of files) bytes += gzipSync(await readFile(join(webAppFolder, file))).length
    return Math.ceil(bytes / 1000)
  }
  const list = new Set(filesFrom('index.html'))
  const session = list.union(new Set(filesFrom('src/session/session-screen.tsx')))
  return { list: await kilobytes(list), session: await kilobytes(session) }
}

function watchRequests(page: Page, port: number, complain: (problem: string) => void): void {
  page.on('request', (request) => {
    if (!request.url().startsWith('about:') && new URL(request.url()).host !== `127.0.0.1:${port}`)
      complain(`the page asked ${request.url()}`)
  })
}

interface Conversing {
  page: Page
  home: FakeHome
  say: (line: string) => void
  complain: (problem: string) => void
}

/** A new session: an answer that streams, a command that a person allows, an edit, and the end. */
async function converse({ page, home, say, complain }: Conversing): Promise<void> {
  home.provider.script(
    {
      type: 'answer',
      content: [
        { type: 'text', chunks: ['I **begin** '] },
        { type: 'wait', gate: 'middle' },
        { type: 'text', chunks: ['with `ls`, and [look](https://example.com/) at <b>it</b>.'] },
        call('c1', 'bash', { command: 'touch made.txt && echo made' }),
      ],
    },
    answer(call('c2', 'read', { path: 'greet.txt' }), call('c3', 'ls', { path: '.' })),
    answer(call('c4', 'edit', { path: 'greet.txt', oldText: 'hello world', newText: 'hello there' })),
    answer({ type: 'text', chunks: ['All done.\n\n```ts\nconst x: number = 1\n```\n'] }),
  )
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByLabel('First message').fill('Greet me.')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('.mine', { hasText: 'Greet me.' }).waitFor()
  // The rest of the answer is held back.
  await page.locator('.answer strong', { hasText: 'begin' }).waitFor()
  say('streaming')
  home.provider.release('middle')
  const request = page.getByRole('region', { name: 'Allow bash?' })
  await request.waitFor()
  if (!(await request.innerText()).includes('touch made.txt && echo made'))
    complain('the request does not show the whole command')
  await request.getByRole('button', { name: 'Allow once' }).click()
  const edit = page.getByRole('region', { name: 'Allow edit?' })
  await edit.waitFor()
  say('allowed the command')
  if ((await edit.locator('mark').allInnerTexts()).join() !== 'world,there')
    complain(`the diff marks ${(await edit.locator('mark').allInnerTexts()).join()}`)
  await edit.getByRole('button', { name: 'Allow once' }).click()
  await page.getByText('All done.').waitFor()
  say('done')
  await page.locator('.session-head .status.idle').waitFor()
  if ((await readFile(join(home.cwd, 'greet.txt'), 'utf8')) !== 'hello there\nsecond line\n')
    complain('the file was not edited')
  if ((await page.locator('.call', { hasText: 'Read 1 file, listed 1 folder' }).count()) !== 1)
    complain('the reads are not one row')
  if ((await page.locator('.answer b').count()) !== 0) complain('HTML of an answer became an element')
}

/** The server dies in the middle of an answer; the page comes back by itself, and its unsent message is delivered once. */
async function surviveKill(given: {
  page: Page
  home: FakeHome
  app: ServedApp
  complain: (problem: string) => void
}): Promise<ServedApp> {
  const { page, home, app, complain } = given
  home.provider.script({
    type: 'answer',
    content: [
      { type: 'text', chunks: ['Half an answer so far '] },
      { type: 'wait', gate: 'never' },
    ],
  })
  await send(page, 'Say more.')
  await page.locator('.answer', { hasText: 'Half an answer' }).waitFor()
  await app.command.kill('SIGKILL')
  await page.getByText('Connection lost.').waitFor()
  home.provider.script(() => answer({ type: 'text', chunks: ['A whole answer.'] }))
  await send(page, 'Sent while away.')
  await page.locator('.outbox li', { hasText: 'Sent while away.' }).waitFor()
  const url = page.url()
  // Closes the page; what it could not send is in the storage of the browser.
  await page.goto('about:blank')
  const next = await ServedApp.start({ home, port: app.port })
  await page.goto(url)
  await page.locator('.mine', { hasText: 'Sent while away.' }).waitFor()
  const resume = page.getByRole('button', { name: 'Resume' })
  await resume.or(page.getByText('A whole answer.').first()).first().waitFor()
  if (await resume.isVisible()) await resume.click()
  await page.getByText('A whole answer.').first().waitFor()
  await page.locator('.session-head .status.idle').waitFor()
  const times = await page.locator('.mine', { hasText: 'Sent while away.' }).count()
  if (times !== 1) complain(`the message that was sent while away is there ${times} times`)
  return next
}

/** Written before the server starts. */
async function longSession(home: FakeHome): Promise<string> {
  await using store = await openStore(placesOf(home))
  await using session = await store.create({ cwd: home.cwd, name: 'A long one' })
  for (let index = 0; index < longLength; index += 2) {
    await session.appendMessage('user', [text(`question ${index}`)])
    await session.appendMessage('assistant', [text(`answer ${index + 1}\n\n${'with some text '.repeat(index % 40)}`)])
  }
  return session.id
}

const longLength = 400

/** The part of an element that is used; this program has no types of the browser. */
interface Scrolled {
  scrollTop: number
  scrollHeight: number
  clientHeight: number
}

/** The newest entry first, older ones as they come near, the first one at the top, and back; never many rows in the page. */
async function scrollFar(given: { page: Page; url: string; complain: (problem: string) => void }): Promise<void> {
  const { page, url, complain } = given
  await page.goto(url)
  await page.getByText(`answer ${longLength - 1}`).waitFor()
  const distance = (): Promise<number> =>
    page
      .locator('.transcript')
      .evaluate<number, Scrolled>((each) => each.scrollHeight - each.scrollTop - each.clientHeight)
  if ((await distance()) > 2) complain(`a long session opens ${await distance()} px above its end`)
  const first = page.getByText('question 0', { exact: true })
  // In frames: older entries are loaded when the top comes near.
  for (let frames = 0; frames < 400 && !(await first.isVisible()); frames++) {
    await page.locator('.transcript').evaluate<void, Scrolled>((each) => void (each.scrollTop = 0))
    await page.evaluate('new Promise(requestAnimationFrame)')
    const rows = await page.locator('.row').count()
    if (rows > 80) return complain(`${rows} rows are in the page`)
  }
  if (!(await first.isVisible())) complain('the first message of a long session is not reached')
  await page.getByRole('button', { name: 'Jump to newest' }).click()
  await page.getByText(`answer ${longLength - 1}`).waitFor()
}

/** Every screen at one size and in one theme; the request is answered on the phone meanwhile. */
async function inspect(
  view: SiteView,
  given: {
    home: FakeHome
    url: string
    phone: Page
    complain: (problem: string) => void
    treeId: string
    name: string
  },
): Promise<void> {
  const { home, url, phone, complain, treeId } = given
  const { page } = view
  const look = async (screen: string): Promise<void> => {
    for (const problem of await view.inspect())
      if (!/\b401\b/.test(problem)) complain(`${given.name} ${screen}: ${problem}`)
    await pictureOf(view, `${given.name}-${screen}`)
  }
  const base = url.slice(0, url.indexOf('#'))
  await page.goto(base)
  await page.locator('#code-form').waitFor()
  await look('pair')
  await page.goto(await inviteFrom(phone))
  await page.locator('#grant-form').waitFor()
  await look('grant')
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('#connection', { hasText: 'Live' }).waitFor()
  await look('list')
  home.provider.script(
    answer(call('q1', 'bash', { command: 'rm -rf build && npm run build -- --mode production' })),
    answer({ type: 'text', chunks: ['It was not allowed.'] }),
  )
  await page.goto(url)
  await page.getByText('All done.').waitFor()
  await send(phone, 'Build it.')
  await page.getByRole('region', { name: 'Allow bash?' }).waitFor()
  await look('request')
  await phone.getByRole('button', { name: 'Deny with a note' }).click()
  await phone.getByLabel('Why not?').fill('Not today.')
  await phone.getByRole('button', { name: 'Do not allow' }).click()
  // The name of the other screen follows as soon as it is known.
  await page.getByText(/^Answered (?:by .+ )?on another screen\.$/).waitFor()
  await page.getByText('It was not allowed.').last().waitFor()
  await page.locator('.session-head .status.idle').waitFor()
  await look('session')
  const journey = { page, home, base, name: given.name, look, complain, treeId }
  await useList(journey)
  await useSettings(journey)
  await useNotifications(journey)
  await useTree(journey)
  await usePlayer(journey)
  await useContext(journey)
}
