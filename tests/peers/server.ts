import type { FakeProvider, FakeRequest } from '@tapetree/agent/testing'
import { RemoteSession } from '@tapetree/client'
import assert from 'node:assert/strict'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { call, say, sayAndWait, shownTo } from './answers.ts'
import type { Experiment } from './experiment.ts'
import { Served } from './served.ts'
import { logLines, untilWritten } from './session-files.ts'

const webPage: Experiment = {
  experiment: 'web page against a local server',
  others: 'opencode serve, defaults: any Host, `text/plain` from a foreign Origin accepted: command executed',
  attempt: async () => {
    await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
    home.provider.script(() => call({ id: 'call_1', name: 'bash', input: { command: 'touch owned' } }))
    await using server = await Served.start(home)
    const made = await server.ask('POST', '/api/sessions', { cwd: home.cwd })
    const { id } = made.json as { id: string }
    const before = await logLines(home)
    const own = server.url.host
    const [plain, json] = [{ 'content-type': 'text/plain' }, { 'content-type': 'application/json' }]
    const token = { authorization: `Bearer ${server.token}` }
    const evil = { origin: 'https://evil.example' }
    const visits = [
      { host: own, ...plain, ...evil },
      { host: own, ...json, ...evil },
      { host: own, ...json, ...evil, ...token },
      { host: own, ...plain, ...token },
      { host: own, ...json },
      { host: 'evil.example', ...json, ...token },
      { host: 'evil.example', ...plain },
    ]
    for (const path of [`/api/sessions/${id}/prompt`, `/api/sessions/${id}/queue`]) {
      for (const headers of visits) {
        const status = await server.knock(path, headers)
        assert.ok(status >= 400 && status < 500, `${path} ${JSON.stringify(headers)} gave ${status}`)
      }
    }
    assert.deepEqual(await logLines(home), before)
    assert.equal(home.provider.requests.length, 0)
    return `${2 * visits.length} requests of a page refused, with and without a token; nothing was written, nothing ran`
  },
}

const adds = 200

const concurrentAdds: Experiment = {
  experiment: 'independent queue objects on one file, 200 concurrent adds',
  others:
    "Mitto's queue: 6 and 50 acknowledged messages left, file invalid once; 10 to 14 of 100 messages delivered twice",
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(sayAndWait(['Busy ', 'with ', 'this '], 'go', ['.']))
    home.provider.script(() => say('Done.'))
    const server = await Served.start(home)
    const made = await server.ask('POST', '/api/sessions', { cwd: home.cwd, prompt: 'Begin' })
    const { id } = made.json as { id: string }
    await untilWritten(home, 'draft.jsonl', 'Busy')
    const queue = `/api/sessions/${id}/queue`
    await addFromScreens(server, id)
    await server.kill()
    // Killed with all of them waiting; another process takes over.
    await using again = await Served.start(home)
    const { json } = await again.ask('GET', queue)
    const { messages } = json as { messages: { message: string }[] }
    assert.equal(new Set(messages.map(({ message }) => message)).size, adds)
    assert.equal(messages.length, adds)
    home.provider.release('go')
    await again.ask('POST', `/api/sessions/${id}/resume`, {})
    const last = messages.at(-1)?.message ?? ''
    const lastRequest = await requestWith(home.provider, last)
    const delivered = shownTo(lastRequest).filter((line) => line.startsWith('user: Message '))
    assert.deepEqual(
      delivered,
      messages.map(({ message }) => `user: ${message}`),
    )
    return `${adds} acknowledged, ${adds} there after a \`kill -9\`, each delivered once and in order`
  },
}

/** All at once, by four screens that know nothing of each other. A server lets only some sockets at once in that have not shown a token. */
async function addFromScreens({ url, token }: Served, sessionId: string): Promise<void> {
  const open = (): Promise<RemoteSession> => RemoteSession.open({ baseUrl: url.origin, token, sessionId })
  const screens = await Promise.all([open(), open(), open(), open()])
  const added = Array.from({ length: adds }, (_, index) =>
    (screens[index % screens.length] as RemoteSession).changeQueue('queue.add', { message: `Message ${index}` }),
  )
  await Promise.all(added)
  await Promise.all(screens.map((screen) => screen.close()))
}

/** The first one whose last message has these words. */
async function requestWith(provider: FakeProvider, words: string): Promise<FakeRequest> {
  for (let number = 1; ; number++) {
    const request = await provider.request(number)
    if (shownTo(request).at(-1) === `user: ${words}`) return request
  }
}

export const serverExperiments: readonly Experiment[] = [webPage, concurrentAdds]
