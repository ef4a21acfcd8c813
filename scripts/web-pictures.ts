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
const treeId = await writeTree(home)
await using app = await ServedApp.start({ home })
await using browser = await SiteBrowser.start({ axe: '' })
await using desk = await browser.open({ width: deskSize.width, scheme: 'dark' })
await using phone = await browser.open({ width: phoneSize.width, scheme: 'light' })
await desk.page.setViewportSize(deskSize)
await phone.page.setViewportSize(phoneSize)
for (const { page } of [desk, phone]) page.setDefaultTimeout(60_000)
await pair(desk.page, app.link)
await pair(phone.page, await inviteFrom(desk.page, 'drive'))

// A session that has read, edited and tested, and one that waits for a person.
script(home)
const id = await startSession(desk.page, 'The total in total.ts is wrong for an empty order. Fix it and run the tests.')
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
await desk.page.getByText('All tests pass now.').waitFor()
await untilIdle(desk.page)
await keep(desk, 'web-session')
await send(desk.page, 'Also handle a missing price.')
await desk.page.getByText('A missing price counts as zero.').waitFor()
await untilIdle(desk.page)
for (const [screen, fragment] of [
  ['web-tree', `#/sessions/${treeId}/tree`],
  ['web-player', `#/sessions/${id}/player`],
  ['web-context', `#/sessions/${id}/context`],
  ['web-usage', '#/settings/usage'],
] as const) {
  await desk.page.goto(`${app.url}${fragment}`)
  await desk.page.locator('main h1, main h2').first().waitFor()
  // Fonts and charts are there after two frames.
  await desk.page.evaluate('new Promise((done) => setTimeout(done, 1000))')
  await keep(desk, screen)
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
      { type: 'text', chunks: ['I look at the file and at its tests.'] },
      call('c1', 'read', { path: 'total.ts' }),
      call('c2', 'ls', { path: '.' }),
    ),
    answer(
      { type: 'text', chunks: ['`reduce` without a start value **throws** on an empty array:'] },
      call('c3', 'edit', { path: 'total.ts', oldText: reduce, newText: '.reduce((sum, each) => sum + each, 0)' }),
    ),
    answer(call('c4', 'bash', { command: 'cat total.ts && touch tested' })),
    answer({
      type: 'text',
      chunks: [
        'All tests pass now.\n\n',
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

/** A session with three branches, a label and a summary. */
async function writeTree(given: FakeHome): Promise<string> {
  await using store = await openStore(placesOf(given))
  await using session = await store.create({ cwd: given.cwd, name: 'Retry failed downloads' })
  const say = (role: 'user' | 'assistant', words: string): Promise<string> => session.appendMessage(role, [text(words)])
  await say('user', 'Downloads fail when the network is slow. Add a retry.')
  const plan = await say('assistant', 'Either a loop in the client, or a queue on disk that survives a restart.')
  await say('user', 'Take the loop.')
  await say('assistant', 'Three attempts, with a pause that doubles.')
  const loop = await say('user', 'What if the process is killed?')
  await say('assistant', 'Then the download is lost. A queue would keep it.')
  await session.branch(plan)
  await say('user', 'Take the queue.')
  const queue = await say('assistant', 'Downloads are lines in a file; each is removed when it is complete.')
  await session.setLabel(queue, 'queue works')
  await say('user', 'Add a test that kills the process.')
  await say('assistant', 'The test kills it at every step, and no download is lost.')
  await session.branch(loop)
  await say('assistant', 'With a journal of one line, the loop could continue, too.')
  await session.branch(queue)
  await say('user', 'Show the queue in the status line.')
  await say('assistant', 'It shows how many downloads wait.')
  return session.id
}
