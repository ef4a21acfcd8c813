// Draws the pictures of the web app for the docs: `node -C @tapetree/source scripts/web-pictures.ts`. Needs a build and chromium.
import { text } from '@tapetree/session'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStore } from '../packages/cli/src/host/open-store.ts'
import { placesOf } from '../packages/cli/src/host/places.ts'
import { fakeHome, type FakeHome } from '../packages/cli/src/testing/fake-home.ts'
import { SiteBrowser, type SiteView } from '../tests/proofs/docs-site/site-browser.ts'
import {
  answer,
  call,
  inviteFrom,
  pair,
  send,
  ServedApp,
  startSession,
  untilIdle,
} from '../tests/proofs/web-app/served-app.ts'
import { buildWeb } from './build-web.ts'

const folder = 'docs/images'
const phoneSize = { width: 390, height: 780 }
const deskSize = { width: 1280, height: 800 }

await mkdir(folder, { recursive: true })
await buildWeb()
await using home = await fakeHome()
await writeFile(join(home.cwd, 'total.ts'), totalFile())
await writeOtherSessions(home)
await using app = await ServedApp.start({ home })
await using browser = await SiteBrowser.start()
await using desk = await browser.open({ width: deskSize.width, scheme: 'dark' })
await using phone = await browser.open({ width: phoneSize.width, scheme: 'light' })
await desk.page.setViewportSize(deskSize)
await phone.page.setViewportSize(phoneSize)
for (const { page } of [desk, phone]) page.setDefaultTimeout(60_000)
await pair(desk.page, app.link)
await pair(phone.page, await inviteFrom(desk.page, 'drive'))

// A session that has read, edited and tested, and one that waits for a person.
script(home)
const id = await startSession(
  desk.page,
  'The total in total.ts is wrong for an empty order. Fix it, and remove the old build.',
)
await desk.page.getByRole('region', { name: 'Allow edit?' }).getByRole('button', { name: 'Allow once' }).click()
await desk.page.getByRole('region', { name: 'Allow bash?' }).waitFor()
await phone.page.goto(app.sessionUrl(id))
await phone.page.getByRole('region', { name: 'Allow bash?' }).waitFor()
await keep(phone, 'web-permission')
await phone.page.goto(app.url)
await phone.page.locator('.needs-you').first().waitFor()
await keep(phone, 'web-list')
await phone.page.goto(app.sessionUrl(id))
await phone.page.getByRole('button', { name: 'Allow once' }).click()
await desk.page.getByText('has the total 0 now.').waitFor()
await untilIdle(desk.page)
await desk.page.getByText(/^Answered by/).waitFor({ state: 'hidden' })
await keep(desk, 'web-session')
await send(desk.page, 'Also handle a missing price.')
await desk.page.getByText('A missing price counts as zero.').waitFor()
await untilIdle(desk.page)
for (const section of ['usage', 'devices', 'notifications']) {
  await desk.page.goto(`${app.url}#/settings/${section}`)
  await desk.page.locator('main h2').first().waitFor()
  await desk.page.locator('main').getByText('Loading…').waitFor({ state: 'detached' })
  await keep(desk, `web-${section}`)
}

async function keep(view: SiteView, name: string): Promise<void> {
  await view.screenshot(join(folder, `${name}.png`))
  console.log(`${folder}/${name}.png`)
}

function totalFile(): string {
  return [
    'export interface Item {',
    '  price: number',
    '  count: number',
    '}',
    '',
    'export function total(items: Item[]): number {',
    '  return items.map(({ price, count }) => price * count).reduce((sum, each) => sum + each)',
    '}',
    '',
  ].join('\n')
}

function script({ provider }: FakeHome): void {
  const reduce = '.reduce((sum, each) => sum + each)'
  provider.script(
    answer(
      { type: 'reasoning', chunks: ['An empty array has no first element, so reduce needs a start value.'] },
      { type: 'text', chunks: ['I look at the file first.'] },
      call('c1', 'read', { path: 'total.ts' }),
      call('c2', 'ls', { path: '.' }),
    ),
    answer(
      { type: 'text', chunks: ['`reduce` without a start value **throws** on an empty array:'] },
      call('c3', 'edit', { path: 'total.ts', oldText: reduce, newText: '.reduce((sum, each) => sum + each, 0)' }),
    ),
    answer(call('c4', 'bash', { command: 'rm -f total.js && ls' })),
    answer({
      type: 'text',
      chunks: [
        'An empty order has the total 0 now.\n\n',
        '| order | before | now |\n| --- | --- | --- |\n| empty | `TypeError` | 0 |\n| two items | 30 | 30 |\n\n',
        '```ts\nexpect(total([])).toBe(0)\n```\n',
      ],
    }),
    answer({ type: 'text', chunks: ['A missing price counts as zero. No other file uses it.'] }),
  )
}

/** Sessions of the days before, so that the list looks like one in use. */
async function writeOtherSessions(given: FakeHome): Promise<void> {
  await using store = await openStore(placesOf(given))
  const talks: [string, string][] = [
    ['Update the dependencies', 'Twelve packages are updated, and one needs Node 24.'],
    ['Why is the build slow?', 'Two thirds of the time is the type checker. It can run beside the bundler.'],
    ['Write the release notes', 'They are in CHANGELOG.md, grouped by what users see.'],
  ]
  for (const [name, said] of talks) {
    await using session = await store.create({ cwd: given.cwd, name })
    await session.appendMessage('user', [text(name)])
    await session.appendMessage('assistant', [text(said)])
  }
}
