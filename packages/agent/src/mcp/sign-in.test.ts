import { expect, test, vi } from 'vitest'
import { callTool, testContext } from '../testing/tool-context.ts'
import { AuthorizationServer } from './testing/authorization-server.ts'
import { HttpTestServer } from './testing/http-server.ts'
import { memoryTokens } from './testing/memory-stores.ts'
import { startServers, type TestServers } from './testing/test-servers.ts'

test('a user signs in once; tokens are stored, used and renewed without a browser', async () => {
  await using authorization = await AuthorizationServer.open()
  await using server = await guardedServer(authorization)
  const store = memoryTokens()
  const opened: string[] = []
  const settings = { test: { type: 'http', url: server.url, headers: { 'X-Secret': 'for you only' }, oauth: {} } }
  {
    const openUrl = (url: string): void => {
      opened.push(url)
      void fetch(url)
    }
    await using first = startServers(settings, { signIn: { store, openUrl } })
    await first.reached('test', 'ready')
    expect(await echo(first)).toEqual({ content: 'in' })
    expect(first.events.map(({ state }) => state.type)).toEqual(['signing_in', 'ready'])
    expect(authorization.asked).toEqual(['register', 'authorize', 'token authorization_code'])
    expect(opened.map((url) => new URL(url).searchParams.get('code_challenge_method'))).toEqual(['S256'])
    // An expired token is renewed during a call.
    authorization.tokens.clear()
    expect(await echo(first)).toEqual({ content: 'in' })
    expect(authorization.asked.slice(3)).toEqual(['token refresh_token'])
  }
  await using second = startServers(settings, { signIn: { store, openUrl: undefined } })
  await second.reached('test', 'ready')
  expect(opened).toHaveLength(1)
  expect(authorization.headers.filter((headers) => 'x-secret' in headers)).toEqual([])
})

test('if no token is valid any more, the call fails and requires a new sign-in', async () => {
  await using authorization = await AuthorizationServer.open()
  await using server = await guardedServer(authorization)
  const warn = vi.spyOn(console, 'warn').mockReturnValue(undefined) // the client library warns about this
  const signIn = { store: memoryTokens(), openUrl: (url: string) => void fetch(url) }
  await using started = startServers({ test: { type: 'http', url: server.url, oauth: {} } }, { signIn })
  await started.reached('test', 'ready')
  authorization.revokeAll()
  const again = started.comes('test', 'ready')
  expect(await echo(started)).toEqual({ content: `${server.origin} requires a sign-in.`, isError: true })
  await again
  expect(await echo(started)).toEqual({ content: 'in' })
  expect(authorization.asked.filter((each) => each === 'authorize')).toHaveLength(2)
  warn.mockRestore()
})

test('an unrequested answer is rejected, and the real one still counts', async () => {
  await using authorization = await AuthorizationServer.open()
  await using server = await guardedServer(authorization)
  const statuses: number[] = []
  const openUrl = async (url: string): Promise<void> => {
    const back = new URL(new URL(url).searchParams.get('redirect_uri') ?? '')
    const attempt = async (change: (forged: URL) => void, init?: RequestInit): Promise<void> => {
      const forged = new URL(back)
      change(forged)
      statuses.push((await fetch(forged, init)).status)
    }
    await attempt((forged) => (forged.search = '?code=stolen&state=guessed'))
    await attempt((forged) => (forged.search = '?code=stolen'))
    await attempt((forged) => (forged.pathname = '/elsewhere'))
    await attempt(() => undefined, { method: 'POST' })
    void fetch(url)
  }
  const settings = { test: { type: 'http', url: server.url, oauth: {} } }
  await using started = startServers(settings, { signIn: { store: memoryTokens(), openUrl } })
  await started.reached('test', 'ready')
  expect(statuses).toEqual([400, 400, 404, 404])
})

test('a declined sign-in, or one without a user, is reported in a sentence and opens no second browser', async () => {
  await using authorization = await AuthorizationServer.open()
  await using server = await guardedServer(authorization)
  let opened = 0
  const openUrl = (url: string): void => {
    opened += 1
    const asked = new URL(url).searchParams
    const back = new URL(asked.get('redirect_uri') ?? '')
    back.searchParams.set('error', 'access_denied')
    back.searchParams.set('state', asked.get('state') ?? '')
    void fetch(back)
  }
  const settings = { test: { type: 'http', url: server.url, oauth: {} } }
  await using refused = startServers(settings, { signIn: { store: memoryTokens(), openUrl } })
  expect(await refused.reached('test', 'failed')).toEqual({
    type: 'failed',
    reason: 'test answered with an error: access_denied',
    isGivenUp: true,
  })
  expect(opened).toBe(1)
  await using alone = startServers(settings, { signIn: { store: memoryTokens(), openUrl: undefined } })
  expect(await alone.reached('test', 'failed')).toEqual({
    type: 'failed',
    reason: `${server.origin} requires a sign-in.`,
    isGivenUp: true,
  })
})

test.each(['file:///etc/passwd', 'javascript:alert(1)', 'http://example.com/authorize', 'https://a:b@example.com/'])(
  'no browser is opened for %s',
  async (endpoint) => {
    await using authorization = await AuthorizationServer.open({ authorization_endpoint: endpoint })
    await using server = await guardedServer(authorization)
    const opened: string[] = []
    const signIn = { store: memoryTokens(), openUrl: (url: string) => void opened.push(url) }
    await using started = startServers({ test: { type: 'http', url: server.url, oauth: {} } }, { signIn })
    await started.reached('test', 'failed')
    expect(opened).toEqual([])
  },
)

test('tokens for one URL are not sent to another server with the same name', async () => {
  await using authorization = await AuthorizationServer.open()
  await using server = await guardedServer(authorization)
  await using other = await HttpTestServer.open()
  const store = memoryTokens()
  const tokens = { access_token: 'canary', token_type: 'Bearer' }
  store.records.set('test', { url: server.url, tokens })
  const settings = { test: { type: 'http', url: other.url, oauth: {} } }
  await using started = startServers(settings, { signIn: { store, openUrl: undefined } })
  await started.reached('test', 'ready')
  expect(other.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
})

async function guardedServer(authorization: AuthorizationServer): Promise<HttpTestServer> {
  const server: HttpTestServer = await HttpTestServer.open({
    before: (request, response) => authorization.guard(request, response, server),
  })
  return server
}

function echo({ servers }: TestServers) {
  const tool = servers.tools().find(({ name }) => name === 'mcp__test__echo')
  if (!tool) throw new Error('There is no such tool.')
  return callTool(tool, { text: 'in' }, testContext({ cwd: '/' }))
}
