import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { answer, call, deliverPush } from '../web-app/served-app.ts'
import { writeHostileBranches, writeHostileTitles, type BranchedSession } from './hostile-sessions.ts'
import type { Payload } from './payloads.ts'

/** What the screens beside the transcript show. */
export interface HostileScreens {
  branched: BranchedSession
  /** Sessions whose names are payloads. */
  titled: readonly string[]
  /** A session whose agent made files with payloads as names and content, from one entry to the other. */
  changed: { id: string; first: string; last: string }
}

interface HostileScreen {
  path: (hostile: HostileScreens) => string
  /** Shows the rest of the screen. */
  unfold?: (page: Page) => Promise<void>
  /** Elements with a payload. */
  payloads: string
  /** At least so many of them. */
  atLeast: number
}

const minHostileFiles = 25

/** Every screen that draws hostile text, except for the transcript and the list. */
export const screens = {
  tree: {
    path: ({ branched }) => `#/sessions/${branched.id}/tree`,
    unfold: async (page) => {
      await page.getByLabel('All entries').check()
      await page.locator('.tree-row').last().click()
      await page.locator('.tree-panel .plain').waitFor()
    },
    payloads: '.tree-row',
    atLeast: 60,
  },
  player: {
    path: ({ branched }) => `#/sessions/${branched.id}/player`,
    unfold: async (page) => {
      await page.locator('input[type=range]:not([max="0"])').focus()
      await page.keyboard.press('End')
    },
    payloads: '.event',
    atLeast: 60,
  },
  context: {
    path: ({ branched }) => `#/sessions/${branched.id}/context`,
    unfold: async (page) => {
      await page.locator('.parts li').nth(2).waitFor()
      await page.evaluate(`for (const fold of document.querySelectorAll('.parts button')) fold.click()`)
    },
    payloads: '.part-body pre',
    atLeast: 40,
  },
  jobs: {
    path: ({ branched }) => `#/sessions/${branched.id}`,
    unfold: async (page) => {
      await page.getByRole('button', { name: 'Views' }).click()
      await page.getByRole('button', { name: 'Background commands' }).click()
      await page.locator('.jobs li').first().waitFor()
      await page.evaluate(`for (const fold of document.querySelectorAll('.jobs li .fold')) fold.click()`)
    },
    payloads: '.jobs .output',
    atLeast: 10,
  },
  compare: {
    path: ({ branched: { id, left, right } }) => `#/sessions/${id}/compare/${left}/${right}`,
    payloads: '.sides li',
    atLeast: 60,
  },
  'changed files': {
    path: ({ changed: { id, first, last } }) => `#/sessions/${id}/compare/${first}/${last}`,
    unfold: async (page) => {
      await page.locator('.changed-files li').first().waitFor()
      await page.evaluate(`for (const fold of document.querySelectorAll('.changed-files .fold')) fold.click()`)
      await page
        .locator('.changed-files .diff')
        .nth(minHostileFiles - 1)
        .waitFor()
    },
    payloads: '.changed-files li',
    atLeast: minHostileFiles,
  },
  rewind: {
    path: ({ changed }) => `#/sessions/${changed.id}`,
    unfold: async (page) => {
      const mine = page.locator('.mine', { hasText: 'Make files.' })
      await mine.hover()
      await mine.getByRole('button', { name: 'Go back to here…' }).click()
      await page.getByRole('button', { name: /^Show all / }).click()
    },
    payloads: '.rewind-files li',
    atLeast: minHostileFiles,
  },
  devices: {
    path: () => '#/settings/devices',
    unfold: (page) =>
      page
        .getByRole('button', { name: /^Revoke / })
        .first()
        .click(),
    payloads: '.devices li',
    atLeast: 40,
  },
  usage: {
    path: () => '#/settings/usage',
    unfold: async (page) => {
      await page.locator('.bars li').first().waitFor()
      await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`)
    },
    payloads: '.bars li, tbody tr',
    atLeast: 60,
  },
  search: {
    path: () => '#/search?q=alert',
    unfold: async (page) => {
      await page.getByRole('button', { name: 'Show older matches' }).click()
      await page.locator('.hits li').nth(31).waitFor()
    },
    payloads: '.hits li',
    atLeast: 40,
  },
  'search for a payload': {
    path: () => `#/search?q=${encodeURIComponent('<img src=x onerror=alert(1)>')}`,
    payloads: '.list-body [role=status]',
    atLeast: 1,
  },
  archive: { path: () => '#/archive', payloads: '.stored li', atLeast: 10 },
  trash: {
    path: () => '#/trash',
    unfold: async (page) => {
      await page
        .getByRole('button', { name: /^Restore / })
        .first()
        .click()
      await page.getByText(/^Restored /).waitFor()
    },
    payloads: '.stored li',
    atLeast: 10,
  },
  folders: {
    path: () => '#/new',
    unfold: async (page) => {
      await page.getByRole('button', { name: 'Browse' }).click()
      await page.locator('.folder-browser button').first().click()
      await page.getByRole('button', { name: /Parent folder|All folders/ }).waitFor()
    },
    payloads: '.folder-browser button',
    atLeast: 20,
  },
  'live region': {
    path: () => '#/',
    unfold: (page) => page.getByText(/needs you\.$/).waitFor({ state: 'attached' }),
    payloads: 'p.unseen',
    atLeast: 1,
  },
} as const satisfies Record<string, HostileScreen>

export type ScreenName = keyof typeof screens

/** To be called before the server starts. */
export async function writeHostileScreens(
  home: FakeHome,
  payloads: readonly Payload[],
): Promise<Omit<HostileScreens, 'changed'>> {
  for (const { text } of payloads) {
    const name = text.replaceAll(/[/\0]/g, '').toWellFormed()
    // Some systems allow less in a name than others.
    if (name.trim() !== '' && name.length < 100) await mkdir(join(home.cwd, `folder ${name}`)).catch(() => undefined)
  }
  return {
    branched: await writeHostileBranches(home, payloads),
    titled: await writeHostileTitles(home, payloads),
  }
}

/** What only a server has: devices, an archive, a trash, a session that waits, and one that changed files. `page` is paired. */
export async function prepareScreens(
  page: Page,
  { home, titled, payloads }: Pick<HostileScreens, 'titled'> & { home: FakeHome; payloads: readonly Payload[] },
): Promise<HostileScreens['changed']> {
  const names = payloads.map(({ text }) => text.toWellFormed().slice(0, 200)).filter((name) => name.trim() !== '')
  const requests = [
    ...names.slice(0, 50).map((name) => ({ method: 'POST', path: 'tokens', body: { role: 'view', name } })),
    ...titled.slice(0, 15).map((id) => ({ method: 'POST', path: `sessions/${id}/archive`, body: {} })),
    ...titled.slice(15, 30).map((id) => ({ method: 'DELETE', path: `sessions/${id}` })),
  ]
  const statuses = await page.evaluate<
    number[]
  >(`Promise.all(${JSON.stringify(requests)}.map(({ method, path, body }) =>
    fetch('api/' + path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
      .then(({ status }) => status)))`)
  const refused = statuses.filter((status) => status >= 300)
  if (refused.length > 5) throw new Error(`The server refused ${refused.length} preparations: ${refused.join()}.`)

  home.provider.script(answer(call('w1', 'bash', { command: 'rm -rf build' })))
  const waiting = { name: names.join(' ').slice(0, 1000), prompt: 'Wait.' }
  await page.evaluate(
    `fetch('api/sessions', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(JSON.stringify(waiting))} })`,
  )
  return changeFiles(page, home, payloads)
}

/** An agent that may do everything makes one file for each payload that can be a name. */
async function changeFiles(
  page: Page,
  home: FakeHome,
  payloads: readonly Payload[],
): Promise<HostileScreens['changed']> {
  const cwd = join(home.cwd, 'hostile-files')
  await mkdir(cwd)
  const files = payloads.map(({ text }) => ({ name: text.replaceAll(/[/\0]/g, '').toWellFormed(), text: `${text}\n` }))
  const usable = files.filter(({ name }) => name.trim() !== '' && name.length < 60 && name !== '..')
  await writeFile(
    join(home.cwd, 'make-files.cjs'),
    `const { writeFileSync } = require('node:fs')
    for (const { name, text } of ${JSON.stringify(usable)}) try { writeFileSync('file ' + name, text) } catch {}`,
  )
  const command = `'${process.execPath}' ../make-files.cjs`
  home.provider.script(answer(call('f1', 'bash', { command })), answer({ type: 'text', chunks: ['Made them.'] }))
  const ask = <T>(method: string, path: string, body?: unknown): Promise<T> =>
    page.evaluate<T>(
      `fetch('api/' + ${JSON.stringify(path)}, { method: '${method}', headers: { 'content-type': 'application/json' }${
        body === undefined ? '' : `, body: ${JSON.stringify(JSON.stringify(body))}`
      } }).then((each) => each.json())`,
    )
  const { id } = await ask<{ id: string }>('POST', 'sessions', { cwd, name: 'Files' })
  await ask('PATCH', `sessions/${id}`, { mode: 'auto' })
  await page.evaluate(`location.hash = '#/sessions/${id}'`)
  await page.getByLabel('Message', { exact: true }).fill('Make files.')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('Made them.').waitFor()
  await page.locator('.session-head .status.idle').waitFor()
  const tree = await ask<{ nodes: { id: string; role?: string }[]; leaf_id: string | null }>(
    'GET',
    `sessions/${id}/tree`,
  )
  const first = tree.nodes.find(({ role }) => role === 'user')?.id
  const last = tree.leaf_id
  if (first === undefined || last === null) throw new Error('The session that changed files has no entries.')
  return { id, first, last }
}

/** Opens a screen and unfolds it. Returns the number of its payloads, and waits until there are enough. */
export async function showScreen(
  page: Page,
  { name, url, hostile }: { name: ScreenName; url: string; hostile: HostileScreens },
): Promise<number> {
  const { path, unfold, payloads, atLeast }: HostileScreen = screens[name]
  await page.goto(url + path(hostile))
  await unfold?.(page)
  await page
    .locator(payloads)
    .nth(atLeast - 1)
    .waitFor({ state: 'attached' })
  return page.locator(payloads).count()
}

/** Push messages whose names, sessions and reasons are payloads. Returns the titles of the notifications that the service worker shows. */
export async function pushHostile(
  page: Page,
  { url, payloads }: { url: string; payloads: readonly Payload[] },
): Promise<string[]> {
  const { origin } = new URL(url)
  await page.context().grantPermissions(['notifications'], { origin })
  await page.goto(`${url}#/settings/notifications`)
  await page.getByRole('button', { name: 'Turn on push messages' }).waitFor()
  const titles: string[] = []
  for (const { text } of payloads) {
    const { title } = await deliverPush(page, JSON.stringify({ session_id: text, name: text, needs: text }))
    titles.push(title)
  }
  return titles
}
