// Every route has a method of `RestClient`, and every method is called against a real server here.
import { onlyModel } from '@tapetree/agent'
import { noRules } from '@tapetree/agent/permissions'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { RestClient } from '@tapetree/client'
import { memoryStore } from '@tapetree/session'
import { execFileSync } from 'node:child_process'
import { createECDH, randomBytes } from 'node:crypto'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { agentSessions } from './drivers/agent-sessions.ts'
import { askingGate } from './http/testing/asking-gate.ts'
import { routeFor } from './http/testing/checked-response.ts'
import { TestServer } from './testing/running-server.ts'
import type { DeclaredRoute } from './http/app.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Stage {
  server: TestServer
  rest: RestClient
  /** Routes that the client has used. */
  used: Set<string>
  project: string
}

async function stage(): Promise<Stage> {
  const model = scriptedModel(script().reasoning('hm').toolCall('call-1', 'act', { file_path: 'a' }), {
    otherwise: () => script().text('A peculiar answer'),
  })
  const sessions = agentSessions({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: askingGate,
    hasSubagents: false,
  })
  const server = await TestServer.start((folder) => ({
    sessions,
    push: { file: join(folder, 'push.json') },
    api: {
      roots: () => [folder],
      agents: () => Promise.resolve([{ id: 'tapetree', name: 'tapetree' }]),
      workspace: () => Promise.resolve({ rules: noRules }),
      changeSettings: () => Promise.resolve(),
      settings: () =>
        Promise.resolve({
          values: { mcpServers: { my_server: { some_option: 1 } } } as never,
          origins: new Map([['mcpServers.my_server', { layer: 'user' as const }]]),
          problems: [],
        }),
    },
  }))
  cleanUps.push(() => server.close())
  const used = new Set<string>()
  const counting: typeof fetch = async (input, init) => {
    const { pathname } = new URL(input as URL)
    const routes = server.server.declared.filter((route): route is DeclaredRoute => route.config !== undefined)
    const route = routeFor(routes, { method: init?.method ?? 'GET', path: pathname })
    if (route) used.add(`${route.method} ${route.path}`)
    return fetch(input, init)
  }
  const rest = new RestClient({ baseUrl: server.server.url, token: await server.token('drive'), fetch: counting })
  const project = join(await realpath(server.folder), 'project')
  await mkdir(project)
  await writeFile(join(project, 'a.txt'), 'one\n')
  return { server, rest, used, project }
}

test('every route has a method, with camelCase names in queries, bodies and results', async () => {
  const { server, rest, used, project } = await stage()
  const idle = (id: string): Promise<void> =>
    vi.waitFor(async () => expect(await rest.sessionDetails(id)).toMatchObject({ status: 'idle', runId: null }))

  // Sessions and runs.
  const { id } = await rest.createSession({ cwd: project, name: 'First' })
  const image = await rest.storeImage(
    id,
    new Blob([Buffer.from('\x89PNG\r\n\x1a\nrest', 'latin1')], { type: 'image/png' }),
  )
  expect((await rest.blob(id, image.id)).size).toBe(image.size)
  await rest.prompt(id, { text: 'A question', imageIds: [image.id] })
  const [request] = await vi.waitFor(async () => {
    const { permissions } = await rest.permissions(id)
    expect(permissions).toHaveLength(1)
    return permissions
  })
  await rest.answer(id, request?.requestId ?? '', { optionId: 'yes' })
  await idle(id)
  expect((await rest.sessions({ limit: 10 })).sessions).toMatchObject([{ id, messageCount: 4 }])
  expect(await rest.session(id)).toMatchObject({ name: 'First' })
  expect(await rest.patchSession(id, { name: 'Renamed', thinkingLevel: 'off' })).toMatchObject({ name: 'Renamed' })
  expect(await rest.retry(id)).toEqual({ runId: expect.any(String) as string })
  await idle(id)
  expect(await rest.resume(id)).toEqual({ runId: null })
  expect(await rest.abort(id)).toEqual({ runId: null })

  // The queue, with a token that may not start a run.
  const quiet = new RestClient({ baseUrl: server.server.url, token: await server.token('queue') })
  const first = await quiet.addToQueue(id, { message: 'later' })
  expect(await rest.queue(id)).toMatchObject({ messages: [{ id: first.id, held: true }] })
  expect(await rest.queuedMessage(id, first.id)).toMatchObject({ message: 'later', imageIds: [] })
  await rest.changeQueued(id, first.id, { message: 'changed', imageIds: [image.id] })
  await rest.removeQueued(id, first.id)
  await rest.addToQueue(id, { message: 'go' })
  await idle(id)
  await rest.clearQueue(id)

  // Looking back.
  const { events, head } = await rest.events(id, { limit: 1000 })
  expect(events).toHaveLength(head.seq)
  const tree = await rest.tree(id, { limit: 3 })
  expect(tree).toMatchObject({ hasBefore: true, hasAfter: false })
  const [node] = tree.nodes
  expect(node?.parentId).toEqual(expect.any(String))
  const around = await rest.entries(id, { entryId: node?.id ?? '', before: 1, after: 1 })
  expect(around.entries[1]).toMatchObject({ id: node?.id, parent_id: node?.parentId })
  expect(around).toMatchObject({ leafId: tree.leafId, previous: expect.any(Number) as number })
  const leaf = tree.leafId ?? ''
  expect(await rest.compare(id, { left: leaf, right: node?.id ?? '' })).toMatchObject({
    commonAncestor: node?.id,
    left: { leafId: leaf, entryCount: expect.any(Number) as number },
  })
  expect(await rest.entry(id, leaf)).toMatchObject({ id: leaf, type: 'message' })
  const { messages } = await rest.context(id, leaf)
  const blocks = messages.flatMap(({ message }) => message['content']) as { tool_use?: { input: object } }[]
  expect(blocks.flatMap((block) => block.tool_use?.input ?? [])).toEqual([{ file_path: 'a' }])
  expect(messages[0]).toMatchObject({ entryId: expect.any(String) as string, reason: 'path' })
  expect(await rest.entryRequest(id, leaf)).toMatchObject({ entryId: leaf, recorded: { adapterVersion: '1' } })
  expect((await rest.player(id, { types: 'tool_call', limit: 1 })).events[0]).toMatchObject({
    type: 'tool_call',
    input: { file_path: 'a' },
  })
  const { hits } = await rest.search({ q: 'peculiar', sessionId: id, role: 'assistant' })
  expect(hits[0]).toMatchObject({
    sessionId: id,
    entryId: expect.any(String) as string,
    matches: [{ start: 2, end: 10 }],
  })

  expect(await rest.rewind(id, { entryId: node?.id ?? '', what: 'talk', dryRun: true })).toMatchObject({
    leafId: expect.any(String) as string,
  })
  expect(await rest.jobs(id)).toEqual({ jobs: [] })
  const missing = 'job-000000000000'
  for (const request of [rest.job(id, missing, { after: 0 }), rest.stopJob(id, missing)])
    await expect(request).rejects.toMatchObject({ status: 404 })

  await rest.compact(id)

  // The folder.
  expect((await rest.files(id, { q: 'a' })).files).toEqual([{ path: 'a.txt', type: 'file' }])
  expect(await rest.file(id, { path: 'a.txt' })).toMatchObject({ content: 'one\n', nextOffset: null, isExact: true })
  expect(await (await rest.fileBytes(id, 'a.txt')).text()).toBe('one\n')
  execFileSync('git', ['init', '--quiet', project])
  expect((await rest.gitStatus(id)).files).toMatchObject([{ path: 'a.txt', isUntracked: true }])
  expect(await rest.gitDiff(id, { path: 'a.txt', scope: 'all' })).toMatchObject({ added: 1, isUntracked: true })
  expect((await rest.folders(project)).parent).toBe(await realpath(server.folder))

  // Choices.
  expect(await rest.slashCommands(id)).toEqual({ commands: [] })
  expect((await rest.agents()).agents).toHaveLength(1)
  expect((await rest.models()).models).toEqual([])
  expect(await rest.toolHosts()).toEqual({ toolHosts: [] })
  await expect(rest.setWorkspace(id, { host: 'laptop', workspace: 'app' })).rejects.toMatchObject({
    type: 'tool-host-not-found',
  })
  expect((await rest.settings()).settings).toMatchObject([{ value: { some_option: 1 }, origin: { layer: 'user' } }])
  await rest.changeSettings({ thinkingLevel: 'high' })
  expect(await rest.ready()).toEqual({ status: 'ready' })
  expect(await rest.usage({ days: 1, timeZone: 'UTC' })).toMatchObject({
    total: { inputTokens: expect.any(Number) as number },
  })
  expect(await rest.version()).toMatchObject({ protocol: 'tapetree.v1' })

  // Places.
  const copy = await rest.fork(id, { name: 'Copy' })
  expect((await rest.exportSession(copy.id)).headers.get('content-disposition')).toContain(copy.id)
  expect(await rest.archive(copy.id)).toEqual({ id: copy.id, place: 'archive' })
  expect(await rest.unarchive(copy.id)).toEqual({ id: copy.id, place: 'active' })
  await rest.deleteSession(copy.id)
  expect(await rest.restore(copy.id)).toEqual({ id: copy.id, place: 'active' })
  expect(await rest.eraseSession(copy.id)).toMatchObject({ forks: [] })

  // Access.
  const { tokenId } = await rest.caller()
  const created = await rest.createToken({ role: 'view', name: 'A screen' })
  expect((await rest.tokens()).tokens.map((each) => each.id)).toEqual(expect.arrayContaining([tokenId, created.id]))
  await rest.revokeToken(created.id)
  const { code, expiresAt } = await rest.beginPairing({ role: 'view' })
  expect(await rest.previewPairing(code)).toEqual({ role: 'view', expiresAt })
  const paired = await rest.pair({ code, as: 'token', name: 'A phone' })
  expect(paired).toMatchObject({ role: 'view', createdAt: expect.any(String) as string })
  expect(await rest.signIn(paired.token ?? '')).toMatchObject({ id: paired.id })
  await rest.signOut()

  // Push messages.
  expect(Buffer.from(await rest.pushKey(), 'base64url')).toHaveLength(65)
  const receiver = createECDH('prime256v1')
  receiver.generateKeys()
  const keys = { p256dh: receiver.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') }
  const browser = { endpoint: 'https://push.example.com/x', keys, expirationTime: null }
  const subscribed = await rest.subscribePush(browser)
  expect((await rest.pushSubscriptions()).subscriptions).toEqual([subscribed])
  expect(subscribed).toMatchObject({ service: 'https://push.example.com', createdAt: expect.any(String) as string })
  await rest.unsubscribePush(subscribed.id)

  const over = new AbortController()
  await (await rest.sessionFeed(over.signal)).body?.cancel()
  over.abort()

  const declared = server.server.declared.flatMap(({ method, path, config }) => (config ? [`${method} ${path}`] : []))
  expect(declared.filter((route) => !used.has(route) && !isForOthers(route))).toEqual([])
})

/** Pages for people, and routes for load balancers and for programs without this client. */
function isForOthers(route: string): boolean {
  return (
    /^get \/(?:page\.|icon[-.]|app\.webmanifest|sw\.js|assets\/|$)/.test(route) ||
    ['get /api/health', 'get /api/sessions/{id}/events/stream', 'get /api/openapi.json'].includes(route) ||
    route.startsWith('get /api/docs')
  )
}
