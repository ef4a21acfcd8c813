import { methods } from '@agentclientprotocol/sdk/unstable'
import type { FakeAnswer } from '@tapetree/agent/testing'
import { RemoteSession, RestClient, type ServerAddress, type SessionHandle } from '@tapetree/client'
import { closeCodes, limits, type Role } from '@tapetree/client/protocol'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { addressOfServer, pair, parseServerLink } from '../host/pair.ts'
import { startChild, type Child } from '../host/testing/child.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { ServedSessions, type ServedSessionsOptions } from './served-sessions.ts'
import { TestEditor, type TestEditorOptions } from './testing/test-editor.ts'

const { session: sessionMethods } = methods.agent

let home: FakeHome
let child: Child
let address: ServerAddress & { token: string }
const cleanUps: (() => unknown)[] = []
beforeAll(async () => {
  home = await fakeHome()
  child = startChild(new URL('../main.ts', import.meta.url), ['serve', '--json', '--port', '0'], home)
  const told = JSON.parse(await child.line()) as { pairing_link: string }
  const link = parseServerLink(told.pairing_link)
  if (!link) throw new Error(told.pairing_link)
  address = { ...addressOfServer(await pair(link)) } as typeof address
})
beforeEach(() => home.provider.script())
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await child[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

async function start(options: TestEditorOptions & { token?: string } = {}): Promise<TestEditor> {
  const editor = await TestEditor.dial(address.baseUrl, options.token ?? address.token, options)
  cleanUps.push(() => editor[Symbol.asyncDispose]())
  return editor
}

interface MadeToken {
  id: string
  token: string
}

async function makeToken(role: Role, folder?: string): Promise<MadeToken> {
  const answer = await apiRequest('POST', 'tokens', { role, ...(folder !== undefined && { folder }) })
  return (await answer.json()) as MadeToken
}

function apiRequest(method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${address.baseUrl}/api/${path}`, {
    method,
    headers: { authorization: `Bearer ${address.token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
}

const say = (...chunks: string[]): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks }] })
const call = (name: string, input: object): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'tool_call', id: 'c1', name, chunks: [JSON.stringify(input)] }],
})
const allow: TestEditorOptions['permit'] = ({ options }) => ({
  outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '' },
})

test('an editor of a server gets chunks, tool calls with diffs, usage and the end of its prompt', async () => {
  const path = join(home.cwd, 'a.txt')
  await writeFile(path, 'one\ntwo\n')
  home.provider.script(call('edit', { path: 'a.txt', oldText: 'two', newText: '2' }), say('Do', 'ne.'))
  const editor = await start({ permit: allow })
  expect(await editor.initialize()).toMatchObject({
    agentInfo: { name: 'tapetree' },
    agentCapabilities: { loadSession: true, mcpCapabilities: { http: false } },
  })
  const response = await editor.agent.request(sessionMethods.prompt, {
    sessionId: await editor.session(home.cwd),
    prompt: [{ type: 'text', text: 'edit' }],
  })
  expect(response).toMatchObject({ stopReason: 'end_turn', usage: { inputTokens: expect.any(Number) } })
  expect(editor.text('agent_message_chunk')).toBe('Done.')
  expect(editor.calls()).toMatchObject([
    { kind: 'edit', status: 'completed', content: [{ type: 'diff', path }], locations: [{ path, line: 2 }] },
  ])
  expect(editor.told('usage_update').at(-1)).toMatchObject({ size: 100_000 })
  expect(await readFile(path, 'utf8')).toBe('one\n2\n')
})

test('overwriting a file asks with the text that it replaces', async () => {
  const path = join(home.cwd, 'b.txt')
  await writeFile(path, 'old\n')
  home.provider.script(call('write', { path: 'b.txt', content: 'new\n' }), say('Done.'))
  const editor = await start({ permit: allow })
  await editor.prompt(await editor.session(home.cwd), 'write')
  expect(editor.permissions).toMatchObject([
    { toolCall: { content: expect.arrayContaining([{ type: 'diff', path, oldText: 'old\n', newText: 'new\n' }]) } },
  ])
})

test('sessions are loaded, resumed, listed, forked, renamed and deleted', async () => {
  home.provider.script(call('ls', { path: '.' }), say('Looked.'), say('Two.'), say('Three.'))
  const first = await start({ permit: allow })
  const sessionId = await first.session(home.cwd)
  await first.prompt(sessionId, 'look around')
  await first.quit()
  const second = await start()
  await second.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  expect(second.text('user_message_chunk')).toBe('look around')
  expect(second.text('agent_message_chunk')).toBe('Looked.')
  expect(second.calls()).toMatchObject([{ name: 'ls', status: 'completed' }])
  const third = await start()
  await third.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  await third.prompt(sessionId, 'more')
  expect(third.text('agent_message_chunk')).toBe('Two.')
  const { sessionId: fork } = await third.agent.request(sessionMethods.fork, { sessionId, cwd: home.cwd })
  expect(fork).not.toBe(sessionId)
  await third.prompt(fork, 'and more')
  await third.agent.request(sessionMethods.setTitle, { sessionId: fork, title: 'Renamed' })
  const { sessions } = await third.agent.request(sessionMethods.list, { cwd: home.cwd })
  expect(sessions).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ sessionId, title: 'look around', cwd: home.cwd }),
      expect.objectContaining({ sessionId: fork, title: 'Renamed' }),
    ]),
  )
  await third.agent.request(sessionMethods.delete, { sessionId: fork })
  const left = await third.agent.request(sessionMethods.list, {})
  expect(left.sessions.map((each) => each.sessionId)).not.toContain(fork)
})

test('modes, models and thinking are options, and slash commands are announced', async () => {
  const prompts = join(home.env['TAPETREE_HOME'] ?? '', 'prompts')
  await mkdir(prompts, { recursive: true })
  await writeFile(join(prompts, 'greet.md'), '---\ndescription: Greet somebody\n---\nSay hello to $1.\n')
  const editor = await start()
  const { sessionId, modes, configOptions } = await editor.agent.request(sessionMethods.new, {
    cwd: home.cwd,
    mcpServers: [],
  })
  expect(modes?.currentModeId).toBe('ask')
  expect(configOptions).toMatchObject([
    { id: 'mode', currentValue: 'ask' },
    { id: 'model', currentValue: 'fake/model-1' },
    { id: 'thinking', currentValue: 'off' },
  ])
  const set = await editor.agent.request(sessionMethods.setConfigOption, {
    sessionId,
    configId: 'mode',
    value: 'accept-edits',
  })
  expect(set.configOptions[0]).toMatchObject({ currentValue: 'accept-edits' })
  const commands = await editor.until(() => editor.told('available_commands_update').at(-1)?.availableCommands)
  expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining(['greet', 'compact', 'resume', 'retry']))
})

test('cancelling ends the turn as cancelled and takes back its permission request', async () => {
  home.provider.script(call('bash', { command: 'touch made' }))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const ended = editor.prompt(sessionId, 'touch')
  await editor.until(() => editor.permissions.length === 1)
  await editor.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await ended).toBe('cancelled')
  await editor.until(() => editor.withdrawn === 1)
})

test('two editors and a browser hold one session: all see the run, and the first answer counts', async () => {
  home.provider.script(call('bash', { command: 'touch made' }), say('Done.'))
  const owner = await start({ name: 'one' })
  const sessionId = await owner.session(home.cwd)
  const other = await start({ name: 'two' })
  await other.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  const browser = await RemoteSession.open({ ...address, sessionId, client: { kind: 'browser' } })
  cleanUps.push(() => browser.close())
  await browser.ready
  const ended = owner.prompt(sessionId, 'make it')
  await owner.until(() => owner.permissions.length === 1)
  await other.until(() => other.permissions.length === 1)
  expect(browser.state('presence')?.map(({ kind, name }) => [kind, name])).toEqual(
    expect.arrayContaining([
      ['editor', 'one'],
      ['editor', 'two'],
    ]),
  )
  await expect.poll(() => browser.transcript.permissions.length).toBe(1)
  const [request] = browser.transcript.permissions
  const option = request?.options.find(({ kind }) => kind === 'allow_once')
  await browser.answer(request?.requestId ?? '', { optionId: option?.optionId ?? '' })
  expect(await ended).toBe('end_turn')
  await owner.until(() => owner.withdrawn === 1)
  await other.until(() => other.withdrawn === 1)
  await other.until(() => other.text('agent_message_chunk') === 'Done.')
  expect(other.text('user_message_chunk')).toBe('make it')
})

const question = { question: 'Which color?', options: [{ label: 'red' }, { label: 'blue' }] }

test.each([
  ['permission request', call('bash', { command: 'touch made' })],
  ['question', call('ask_user', question)],
])('cancelling a queued prompt leaves the %s of another screen to its user', async (_kind, asking) => {
  home.provider.script(asking, say('Done.'))
  const decided = Promise.withResolvers<void>()
  const owner = await start({
    permit: async (request, signal) => {
      await decided.promise
      return allow(request, signal)
    },
  })
  const sessionId = await owner.session(home.cwd)
  const [asked, cancelled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const untilCancelled = (): Promise<void> => {
    asked.resolve()
    return cancelled.promise
  }
  const other = await start({
    capabilities: { elicitation: { form: {} } },
    permit: () => untilCancelled().then(() => ({ outcome: { outcome: 'cancelled' } })),
    elicit: () => untilCancelled().then(() => ({ action: 'cancel' })),
  })
  await other.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  const ended = owner.prompt(sessionId, 'ours')
  await Promise.all([asked.promise, owner.until(() => owner.permissions.length === 1)])
  const queued = other.prompt(sessionId, 'theirs')
  await expect.poll(async () => (await new RestClient(address).queue(sessionId)).count).toBe(1)
  cancelled.resolve()
  await other.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await queued).toBe('cancelled')
  decided.resolve()
  expect(await ended).toBe('end_turn')
  expect(owner.withdrawn).toBe(0)
  expect(owner.calls()).toMatchObject([{ status: 'completed' }])
})

test('an editor that dismisses a request of its own run denies the call, and the run goes on', async () => {
  const editor = await start({
    capabilities: { elicitation: { form: {} } },
    permit: () => ({ outcome: { outcome: 'cancelled' } }),
    elicit: () => ({ action: 'cancel' }),
  })
  const sessionId = await editor.session(home.cwd)
  home.provider.script(call('ask_user', question), { type: 'failure', error: 'auth', message: 'Wrong key.' })
  await expect(editor.prompt(sessionId, 'ask')).rejects.toThrow('Wrong key.')
  home.provider.script(call('bash', { command: 'touch made' }), say('Not done.'))
  expect(await editor.prompt(sessionId, '/retry')).toBe('end_turn')
  expect(editor.text('agent_message_chunk')).toBe('Not done.')
  expect(editor.calls().at(-1)).toMatchObject({ status: 'failed' })
})

test('dismissing the question of an extension command ends the command', async () => {
  const settings = join(home.env['TAPETREE_HOME'] ?? '', 'settings.json')
  const before = await readFile(settings, 'utf8')
  cleanUps.push(() => writeFile(settings, before))
  const extension = join(home.home, 'sure.mjs')
  await writeFile(settings, JSON.stringify({ ...JSON.parse(before), extensions: [extension] }))
  const run = `async () => ({ say: JSON.stringify(await api.ask({ question: 'Sure?', options: [{ label: 'yes' }] })) })`
  const text = `export default (api) => api.registerCommand({ name: 'sure', description: 'Ask', run: ${run} })`
  await writeFile(extension, text)
  const editor = await start({ permit: () => ({ outcome: { outcome: 'cancelled' } }) })
  expect(await editor.prompt(await editor.session(home.cwd), '/sure')).toBe('end_turn')
  expect(editor.text('agent_message_chunk')).toContain('"isCancelled":true')
})

test('a new session without a prompt is discarded when its editor quits', async () => {
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  await editor.quit()
  await expect.poll(listed).not.toContain(sessionId)
})

/** The ids of all sessions, in order. */
async function listed(): Promise<string[]> {
  const { sessions } = await new RestClient(address).sessions({ limit: 200 })
  return sessions.map(({ id }) => id).sort()
}

/** The sessions of an editor that takes all updates and answers no request. */
function silentEditor(openSession: ServedSessionsOptions['openSession']): ServedSessions {
  const never = (): Promise<never> => new Promise(() => undefined)
  const features = { terminals: false, notices: false, compaction: false, forms: false }
  const editor = { features, update: () => Promise.resolve(), requestPermission: never, elicit: never }
  const sessions = new ServedSessions({ editor, editorName: 'silent', address, openSession })
  cleanUps.push(() => sessions.closeAll())
  return sessions
}

async function remote({ sessionId }: { sessionId: string }): Promise<SessionHandle> {
  const handle = await RemoteSession.open({ ...address, sessionId })
  cleanUps.push(() => handle.close())
  await handle.ready
  return handle
}

test.each(['create', 'open'] as const)('an editor that quits during %s leaves no screen', async (method) => {
  const { id: existing } = await new RestClient(address).createSession({ cwd: home.cwd })
  const before = await listed()
  const opened = Promise.withResolvers<SessionHandle>()
  const gate = Promise.withResolvers<void>()
  const sessions = silentEditor(async (options) => {
    opened.resolve(await remote(options))
    await gate.promise
    return opened.promise
  })
  const made = method === 'create' ? sessions.create({ cwd: home.cwd, mcpServers: [] }) : sessions.open(existing)
  const rejected = expect(made).rejects.toThrow('closed')
  const handle = await opened.promise
  await sessions.closeAll()
  gate.resolve()
  await rejected
  expect(handle.status.type).toBe('closed')
  expect(await listed()).toEqual(before)
})

test('two requests for one session leave no screen when the editor quits', async () => {
  const { id } = await new RestClient(address).createSession({ cwd: home.cwd })
  const handles: SessionHandle[] = []
  const both = Promise.withResolvers<void>()
  const sessions = silentEditor(async (options) => {
    const handle = await remote(options)
    if (handles.push(handle) === 2) both.resolve()
    await both.promise
    return handle
  })
  await Promise.all([sessions.open(id), sessions.open(id)])
  await sessions.closeAll()
  expect(handles.map(({ status }) => status.type)).toEqual(['closed', 'closed'])
})

test('a session or a copy above the maximum is discarded', async () => {
  home.provider.script(say('Said.'))
  const owner = await start()
  const sessionId = await owner.session(home.cwd)
  await owner.prompt(sessionId, 'hello')
  const sessions = silentEditor(remote)
  const create = (): Promise<unknown> => sessions.create({ cwd: home.cwd, mcpServers: [] })
  await Promise.all(Array.from({ length: 32 }, create))
  const before = await listed()
  await expect(create()).rejects.toThrow('at most 32 sessions')
  await expect(sessions.fork(sessionId)).rejects.toThrow('at most 32 sessions')
  expect(await listed()).toEqual(before)
})

test('an editor that quits during a run leaves the run to the server', async () => {
  home.provider.script({
    type: 'answer',
    content: [
      { type: 'wait', gate: 'later' },
      { type: 'text', chunks: ['Finished.'] },
    ],
  })
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const asked = home.provider.requests.length
  const ended = editor.prompt(sessionId, 'go').catch(() => 'closed')
  await home.provider.request(asked + 1)
  await editor.quit()
  expect(await ended).toBe('closed')
  home.provider.release('later')
  const next = await start()
  await next.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  await next.until(() => next.text('agent_message_chunk') === 'Finished.')
})

test('MCP servers of the editor are left out, and the editor is told', async () => {
  const editor = await start({ capabilities: { session: { notices: {} } } })
  await editor.agent.request(sessionMethods.new, {
    cwd: home.cwd,
    mcpServers: [{ name: 'mine', command: 'touch', args: [join(home.cwd, 'started')], env: [] }],
  })
  await editor.until(() => editor.told('notice').some(({ title }) => title.includes('MCP servers')))
  await expect(readFile(join(home.cwd, 'started'))).rejects.toThrow('ENOENT')
})

test('a folder outside of the roots is refused', async () => {
  const editor = await start()
  await expect(editor.session('/')).rejects.toThrow('outside of the folders')
  await expect(editor.session('relative')).rejects.toThrow('not absolute')
})

test('a token may do over this protocol what its role allows', async () => {
  home.provider.script(say('Said.'))
  const owner = await start()
  const sessionId = await owner.session(home.cwd)
  await owner.prompt(sessionId, 'secret words')
  const viewer = await start({ token: (await makeToken('view')).token })
  await viewer.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  expect(viewer.text('agent_message_chunk')).toBe('Said.')
  const refused = /needs the role/
  await expect(viewer.prompt(sessionId, 'hi')).rejects.toThrow(refused)
  await expect(viewer.session(home.cwd)).rejects.toThrow(refused)
  await expect(viewer.agent.request(sessionMethods.fork, { sessionId, cwd: home.cwd })).rejects.toThrow(refused)
  await expect(viewer.agent.request(sessionMethods.setMode, { sessionId, modeId: 'auto' })).rejects.toThrow(refused)
  await expect(viewer.agent.request(sessionMethods.setTitle, { sessionId, title: 'x' })).rejects.toThrow(refused)
  await expect(viewer.agent.request(sessionMethods.delete, { sessionId })).rejects.toThrow(refused)
  await expect(viewer.agent.request(sessionMethods.archive, { sessionId })).rejects.toThrow(refused)
  await viewer.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  await expect(viewer.prompt(sessionId, '/compact')).rejects.toThrow(refused)
  expect((await new RestClient(address).session(sessionId)).name).toBe('secret words')
})

test('a token for a folder sees no session outside of it', async () => {
  home.provider.script(say('Said.'))
  const inside = join(home.cwd, 'inside')
  await mkdir(inside, { recursive: true })
  const owner = await start()
  const sessionId = await owner.session(home.cwd)
  await owner.prompt(sessionId, 'hello')
  const confined = await start({ token: (await makeToken('drive', inside)).token })
  expect((await confined.agent.request(sessionMethods.list, {})).sessions).toEqual([])
  const load = confined.agent.request(sessionMethods.load, { sessionId, cwd: inside, mcpServers: [] })
  await expect(load).rejects.toMatchObject({ code: -32002 })
  await expect(confined.session(home.cwd)).rejects.toThrow('outside of the folder')
  expect(await confined.session(inside)).not.toBe('')
})

test.each<Role>(['metrics', 'host'])('a token of the role %s connects no editor', async (role) => {
  const { token } = await makeToken(role)
  const socket = new WebSocket(`${address.baseUrl.replace('http', 'ws')}/acp`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }]
  expect(response.statusCode).toBe(403)
  socket.on('error', () => undefined)
  socket.terminate()
})

test('revoking a token ends the connection at once, also during a prompt', async () => {
  home.provider.script(call('bash', { command: 'touch made' }))
  const { id, token } = await makeToken('drive')
  const editor = await start({ token })
  const ended = editor.prompt(await editor.session(home.cwd), 'go').catch(() => 'closed')
  await editor.until(() => editor.permissions.length === 1)
  expect((await apiRequest('DELETE', `tokens/${id}`)).status).toBe(204)
  expect(await ended).toBe('closed')
  await editor.closed
  await expect(TestEditor.dial(address.baseUrl, token)).rejects.toThrow('401')
})

test('a browser connects with its token as a subprotocol', async () => {
  const socket = new WebSocket(`${address.baseUrl.replace('http', 'ws')}/acp`, ['acp.v1', `bearer.${address.token}`])
  await once(socket, 'open')
  expect(socket.protocol).toBe('acp.v1')
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }))
  const [answer] = (await once(socket, 'message')) as [Buffer]
  expect(JSON.parse(answer.toString())).toMatchObject({ id: 1, result: { agentInfo: { name: 'tapetree' } } })
  socket.close()
  const wrong = new WebSocket(`${address.baseUrl.replace('http', 'ws')}/acp`, ['acp.v1', 'bearer.wrong'])
  const [code] = (await once(wrong, 'close')) as [number]
  expect(code).toBe(closeCodes.auth)
})

test('a prompt may be larger than a command of other clients', async () => {
  home.provider.script(say('Read.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const text = 'x'.repeat(limits.maxFrameBytes * 2)
  const response = await editor.agent.request(sessionMethods.prompt, {
    sessionId,
    prompt: [
      { type: 'text', text: 'Read ' },
      { type: 'resource', resource: { uri: 'file:///big.txt', text } },
    ],
  })
  expect(response.stopReason).toBe('end_turn')
})

test('tapetree acp --connect serves an editor on this machine with the sessions of the server', async () => {
  home.provider.script(say('From the server.'))
  const args = ['--connect', address.baseUrl, '--token', address.token]
  const editor = await TestEditor.start(home, { args, name: 'bridged' })
  cleanUps.push(() => editor[Symbol.asyncDispose]())
  const sessionId = await editor.session(home.cwd)
  expect(await editor.prompt(sessionId, 'hi')).toBe('end_turn')
  expect(editor.text('agent_message_chunk')).toBe('From the server.')
  expect((await new RestClient(address).session(sessionId)).firstText).toBe('hi')
  await editor.quit()
})
