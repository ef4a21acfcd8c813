import type { FakeContent, FakeStep } from '@tapetree/agent/testing'
import { text } from '@tapetree/session'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { SiteView } from '../docs-site/site-browser.ts'
import type { PathClient } from './client.ts'

/** Sessions in each state that the list can show, with names that are hard to lay out. */
export async function populate(client: PathClient, home: FakeHome): Promise<void> {
  await using store = await openStore(placesOf(home))
  await using session = await store.create({ cwd: home.cwd, name: 'Interrupted-by-a-crash-'.repeat(6) })
  const leafId = await session.appendMessage('user', [text('work on it')], { with: { runId: 'r' } })
  await session.append({ type: 'run_start', runStart: { runId: 'r', leafId, owner: 'server' } })
  const steps: [string, FakeStep][] = [
    ['Update the dependencies', { type: 'failure', error: 'auth' }],
    ['Migrate the billing service to the new queue', { type: 'answer', content: [{ type: 'wait', gate: 'never' }] }],
    ['Fix the flaky test <b>in</b> CI', { type: 'answer', content: [bashCall] }],
  ]
  for (const [name, step] of steps) {
    const request = home.provider.requests.length + 1
    home.provider.script(step)
    const { id } = await client.rest.createSession({ name })
    await client.rest.prompt(id, { text: name })
    await home.provider.request(request)
  }
}

const bashCall: FakeContent = {
  type: 'tool_call',
  id: 'call-1',
  name: 'bash',
  chunks: [JSON.stringify({ command: 'touch x' })],
}

export interface LookOptions {
  view: SiteView
  client: PathClient
  url: string
  /** The start of the names of pictures. */
  shot: string | undefined
  complain: (problem: string) => void
}

/** Looks at each state of the page: the layout, the console and what axe-core finds. */
export async function inspectStates({ view, client, url, shot, complain }: LookOptions): Promise<void> {
  const { page } = view
  const look = async (state: string): Promise<void> => {
    // A browser reports each 401 and 429 by itself: that is how the page learns that it is not paired.
    const isExpected = (problem: string): boolean => /\b40[13]\b/.test(problem)
    for (const problem of await view.inspect()) if (!isExpected(problem)) complain(`${state}: ${problem}`)
    if (shot !== undefined) await view.screenshot(`${shot}-${state}.png`)
  }
  await page.goto(`${url}/`)
  await page.locator('#code-form').waitFor()
  await look('code')
  await page.getByLabel('Pairing code').fill('wrong')
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.locator('#notice').waitFor()
  await look('wrong-code')
  await page.getByLabel('Pairing code').fill(await client.invite('drive'))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.locator('#grant-form').waitFor()
  await look('grant')
  await page.getByRole('button', { name: 'Pair this device' }).click()
  await page.locator('.needs-you').waitFor()
  await page.locator('.running').waitFor()
  await page.locator('.failed', { hasText: 'Interrupted' }).waitFor()
  await page.locator('.failed', { hasText: 'Failed' }).waitFor()
  await look('list')
}
