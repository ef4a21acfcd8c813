import { methods } from '@agentclientprotocol/sdk/unstable'
import type { FakeAnswer, FakeContent } from '@tapetree/agent/testing'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openStore } from '../host/open-store.ts'
import { placesOf } from '../host/places.ts'
import { bundle } from '../testing/bundled-command.ts'
import { fakeHome, type FakeHome } from '../testing/fake-home.ts'
import { TestEditor, type TestEditorOptions } from './testing/test-editor.ts'

const { session: sessionMethods } = methods.agent

const authRequired = -32000

let home: FakeHome
const editors: TestEditor[] = []
beforeEach(async () => {
  home = await fakeHome()
})
afterEach(async () => {
  for (const editor of editors.splice(0)) await editor[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

async function start(options: TestEditorOptions = {}): Promise<TestEditor> {
  const editor = await TestEditor.start(home, options)
  editors.push(editor)
  return editor
}

async function inboxOf(sessionId: string): Promise<unknown[]> {
  const store = await openStore(placesOf(home))
  try {
    await using session = await store.open(sessionId, { readOnly: true })
    return [...session.inbox.messages]
  } finally {
    await store.close()
  }
}

const say = (...chunks: string[]): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks }] })
const call = (name: string, input: object): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'tool_call', id: 'c1', name, chunks: [JSON.stringify(input)] }],
})
const gated = (gate: string, ...content: FakeContent[]): FakeAnswer => ({
  type: 'answer',
  content: [{ type: 'wait', gate }, ...content],
})
const allow: TestEditorOptions['permit'] = ({ options }) => ({
  outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'allow_once')?.optionId ?? '' },
})

test('initialize names the agent and what it can do', async () => {
  const editor = await start()
  expect(await editor.initialize()).toMatchObject({
    protocolVersion: 1,
    agentInfo: { name: 'tapetree' },
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, embeddedContext: true },
      sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {} },
    },
  })
})

test('a prompt is answered in chunks, and its response says why it ended and what it used', async () => {
  home.provider.script(say('Hello', ' there.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const response = await editor.agent.request(sessionMethods.prompt, {
    sessionId,
    prompt: [{ type: 'text', text: 'Hi' }],
  })
  expect(response).toMatchObject({ stopReason: 'end_turn', usage: { inputTokens: expect.any(Number) } })
  expect(editor.text('agent_message_chunk')).toBe('Hello there.')
  expect(editor.text('user_message_chunk')).toBe('')
  expect(editor.told('usage_update').at(-1)).toMatchObject({ size: 100_000, used: expect.any(Number) })
})

test('images reach the model, links become mentions, and embedded files follow the prompt', async () => {
  home.provider.script(say('Seen.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const uri = pathToFileURL(join(home.cwd, 'a.ts')).href
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  await editor.agent.request(sessionMethods.prompt, {
    sessionId,
    prompt: [
      { type: 'text', text: 'Compare ' },
      { type: 'resource_link', name: 'a.ts', uri },
      { type: 'text', text: ' with ' },
      { type: 'resource', resource: { uri: `${uri}#L1:2`, text: 'const unsaved = 1\n' } },
      { type: 'image', data: pixel, mimeType: 'image/png' },
    ],
  })
  const { body } = await home.provider.request(1)
  const sent = JSON.stringify(body)
  expect(sent).toContain('Compare @a.ts with @a.ts:1-2')
  expect(sent).toContain('<file path=\\"a.ts:1-2\\">\\nconst unsaved = 1\\n</file>')
  expect(sent).toContain('image/png')
  await editor.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  const images = editor.told('user_message_chunk').filter(({ content }) => content.type === 'image')
  expect(images).toMatchObject([{ content: { mimeType: 'image/png', data: expect.stringMatching(/^iVBOR/) } }])
})

test('an edit asks with its diff, and ends with the diff that was made and its place', async () => {
  const path = join(home.cwd, 'a.txt')
  await writeFile(path, 'one\ntwo\nthree\n')
  home.provider.script(call('edit', { path: 'a.txt', oldText: 'two', newText: '2' }), say('Done.'))
  const editor = await start({ permit: allow })
  const sessionId = await editor.session(home.cwd)
  expect(await editor.prompt(sessionId, 'edit')).toBe('end_turn')
  expect(editor.permissions).toMatchObject([
    {
      toolCall: {
        kind: 'edit',
        content: expect.arrayContaining([{ type: 'diff', path, oldText: 'two', newText: '2' }]),
      },
    },
  ])
  expect(editor.calls()).toMatchObject([
    {
      toolCallId: editor.permissions[0]?.toolCall.toolCallId,
      kind: 'edit',
      status: 'completed',
      content: [{ type: 'diff', path, oldText: 'one\ntwo\nthree\n', newText: 'one\n2\nthree\n' }],
      locations: [{ path, line: 2 }],
    },
  ])
  expect(await readFile(path, 'utf8')).toBe('one\n2\nthree\n')
})

test('overwriting a file asks with the text that it replaces', async () => {
  const path = join(home.cwd, 'a.txt')
  await writeFile(path, 'old\n')
  home.provider.script(call('write', { path: 'a.txt', content: 'new\n' }), say('Done.'))
  const editor = await start({ permit: allow })
  await editor.prompt(await editor.session(home.cwd), 'write')
  expect(editor.permissions).toMatchObject([
    { toolCall: { content: expect.arrayContaining([{ type: 'diff', path, oldText: 'old\n', newText: 'new\n' }]) } },
  ])
})

test('a refused call fails, and the model is told', async () => {
  home.provider.script(call('bash', { command: 'touch made' }), say('Understood.'))
  const editor = await start({
    permit: ({ options }) => ({
      outcome: { outcome: 'selected', optionId: options.find(({ kind }) => kind === 'reject_once')?.optionId ?? '' },
    }),
  })
  expect(await editor.prompt(await editor.session(home.cwd), 'touch')).toBe('end_turn')
  expect(editor.calls()).toMatchObject([{ kind: 'execute', title: 'touch made', status: 'failed' }])
})

test('an editor that draws terminals gets the output of a command as it comes, and its exit code', async () => {
  const command = 'echo first; until [ -e go ]; do sleep 0.05; done; echo second; exit 3'
  home.provider.script(call('bash', { command }), say('Failed.'))
  const editor = await start({ permit: allow, capabilities: { _meta: { terminal_output: true } } })
  const ended = editor.prompt(await editor.session(home.cwd), 'run')
  await editor.until(() => output() === 'first\n')
  await writeFile(join(home.cwd, 'go'), '')
  await ended
  const [shown] = editor.calls()
  expect(shown).toMatchObject({
    content: [{ type: 'terminal', terminalId: shown?.['toolCallId'] }],
    _meta: {
      terminal_info: { cwd: home.cwd },
      terminal_exit: { exit_code: 3, signal: null },
    },
  })
  expect(output().trimEnd()).toBe('first\nsecond')

  function output(): string {
    const parts = editor.told('tool_call_update').map(({ _meta: meta }) => meta?.['terminal_output'])
    return parts.map((part) => (part as { data: string } | undefined)?.data ?? '').join('')
  }
})

test('an editor without terminals gets the output as text when the command has ended', async () => {
  home.provider.script(call('bash', { command: "echo '``` fence'" }), say('Done.'))
  const editor = await start({ permit: allow })
  await editor.prompt(await editor.session(home.cwd), 'run')
  expect(editor.calls()).toMatchObject([
    {
      status: 'completed',
      content: [{ type: 'content', content: { type: 'text', text: '````\n``` fence\n````' } }],
    },
  ])
})

test('a plan is shown as one, not as a tool call', async () => {
  home.provider.script(
    call('todo_write', {
      items: [
        { text: 'look', status: 'completed' },
        { text: 'write', status: 'in_progress' },
      ],
    }),
    say('Planned.'),
  )
  const editor = await start()
  await editor.prompt(await editor.session(home.cwd), 'plan')
  expect(editor.calls()).toEqual([])
  expect(editor.told('plan').at(-1)?.entries).toEqual([
    { content: 'look', status: 'completed', priority: 'medium' },
    { content: 'write', status: 'in_progress', priority: 'medium' },
  ])
})

test('a question is answered in a form, or by choosing if the editor has no forms', async () => {
  const question = { question: 'Which color?', options: [{ label: 'red' }, { label: 'blue' }] }
  home.provider.script(call('ask_user', question), say('Green it is.'), call('ask_user', question), say('Blue it is.'))
  const forms = await start({
    capabilities: { elicitation: { form: {} } },
    elicit: () => ({ action: 'accept', content: { answer: 'green' } }),
  })
  const sessionId = await forms.session(home.cwd)
  await forms.prompt(sessionId, 'ask')
  expect(JSON.stringify((await home.provider.request(2)).body)).toContain('green')
  await forms.quit()
  const plain = await start({
    permit: ({ options }) => ({
      outcome: { outcome: 'selected', optionId: options.find(({ name }) => name === 'blue')?.optionId ?? '' },
    }),
  })
  await plain.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  await plain.prompt(sessionId, 'ask')
  expect(plain.permissions[0]?.options.map(({ name }) => name)).toEqual(['red', 'blue', 'Do not answer'])
  expect(JSON.stringify((await home.provider.request(4)).body)).toContain('blue')
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
  home.provider.script(say('Still here.'))
  expect(await editor.prompt(sessionId, 'again')).toBe('end_turn')
})

test('cancelling ends a run that /retry has started', async () => {
  home.provider.script({ type: 'failure', error: 'invalid-request', message: 'No such thing.' }, gated('never'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  await expect(editor.prompt(sessionId, 'hi')).rejects.toThrow('No such thing.')
  const retried = editor.prompt(sessionId, '/retry')
  await home.provider.request(2)
  await editor.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await retried).toBe('cancelled')
})

test('cancelling ends a summary that /compact has started', async () => {
  const long = say('Many words. '.repeat(5000))
  home.provider.script(long, long, long, gated('never'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  for (const text of ['write much', 'write more', 'write all']) await editor.prompt(sessionId, text)
  const compacted = editor.prompt(sessionId, '/compact')
  await home.provider.request(4)
  await editor.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await compacted).toBe('cancelled')
})

test('closing a session cancels the prompt of the editor', async () => {
  home.provider.script(gated('never'), say('Again.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const ended = editor.prompt(sessionId, 'hi')
  await home.provider.request(1)
  await editor.agent.request(sessionMethods.close, { sessionId })
  expect(await ended).toBe('cancelled')
  await editor.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  expect(await editor.prompt(sessionId, 'again')).toBe('end_turn')
})

test('modes, models and thinking are options, and changing one tells the editor', async () => {
  const editor = await start()
  const { sessionId, modes, configOptions } = await editor.agent.request(sessionMethods.new, {
    cwd: home.cwd,
    mcpServers: [],
  })
  expect(modes?.currentModeId).toBe('ask')
  expect(configOptions).toMatchObject([
    { id: 'mode', category: 'mode', currentValue: 'ask' },
    { id: 'model', category: 'model', currentValue: 'fake/model-1' },
    { id: 'thinking', category: 'thought_level', currentValue: 'off' },
  ])
  const set = await editor.agent.request(sessionMethods.setConfigOption, {
    sessionId,
    configId: 'mode',
    value: 'accept-edits',
  })
  expect(set.configOptions[0]).toMatchObject({ currentValue: 'accept-edits' })
  await editor.agent.request(sessionMethods.setMode, { sessionId, modeId: 'plan' })
  const wrong = editor.agent.request(sessionMethods.setMode, { sessionId, modeId: 'yolo' })
  await expect(wrong).rejects.toThrow('There is no permission mode "yolo".')
})

test('slash commands are announced after the session, and a template expands', async () => {
  const prompts = join(home.env['TAPETREE_HOME'] ?? '', 'prompts')
  await mkdir(prompts, { recursive: true })
  await writeFile(join(prompts, 'greet.md'), '---\ndescription: Greet somebody\n---\nSay hello to $1.\n')
  home.provider.script(say('Hello Ada.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  const commands = await editor.until(() => editor.told('available_commands_update').at(-1)?.availableCommands)
  expect(commands.map(({ name }) => name)).toEqual(expect.arrayContaining(['greet', 'compact', 'resume', 'retry']))
  await editor.prompt(sessionId, '/greet Ada')
  expect(JSON.stringify((await home.provider.request(1)).body)).toContain('Say hello to Ada.')
})

test('load tells the whole conversation once; resume tells nothing of the past', async () => {
  home.provider.script(call('ls', { path: '.' }), say('Nothing here.'), say('Bye.'))
  const first = await start({ args: ['--permission-mode', 'auto'] })
  const sessionId = await first.session(home.cwd)
  await first.prompt(sessionId, 'look')
  await first.quit()
  const second = await start()
  await second.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  expect(second.text('user_message_chunk')).toBe('look')
  expect(second.text('agent_message_chunk')).toBe('Nothing here.')
  expect(second.calls()).toMatchObject([{ name: 'ls', status: 'completed' }])
  await second.quit()
  const third = await start()
  await third.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  await third.prompt(sessionId, 'bye')
  expect(third.text('agent_message_chunk')).toBe('Bye.')
  expect(third.calls()).toEqual([])
})

test('sessions are listed by folder, forked, renamed and deleted', async () => {
  home.provider.script(say('One.'), say('Two.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  await editor.prompt(sessionId, 'first words')
  const { sessionId: fork } = await editor.agent.request(sessionMethods.fork, { sessionId, cwd: home.cwd })
  expect(fork).not.toBe(sessionId)
  await editor.prompt(fork, 'more')
  expect(JSON.stringify((await home.provider.request(2)).body)).toContain('first words')
  await editor.agent.request(sessionMethods.setTitle, { sessionId, title: 'Renamed' })
  const listed = await editor.agent.request(sessionMethods.list, { cwd: home.cwd })
  expect(listed.sessions).toMatchObject(
    expect.arrayContaining([
      expect.objectContaining({ sessionId, title: 'Renamed', cwd: home.cwd }),
      expect.objectContaining({ sessionId: fork, title: 'first words' }),
    ]),
  )
  expect((await editor.agent.request(sessionMethods.list, { cwd: '/' })).sessions).toEqual([])
  await editor.agent.request(sessionMethods.delete, { sessionId: fork })
  expect((await editor.agent.request(sessionMethods.list, {})).sessions).toHaveLength(1)
})

test('two editors hold one session: both see the run, the first answer counts and the other request is taken back', async () => {
  home.provider.script(call('bash', { command: 'touch made' }), say('Done.'))
  const decide = Promise.withResolvers<void>()
  const owner = await start({
    name: 'one',
    permit: async (request, signal) => {
      await decide.promise
      return allow(request, signal)
    },
  })
  const sessionId = await owner.session(home.cwd)
  const other = await start({ name: 'two' })
  await other.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  const ended = owner.prompt(sessionId, 'make it')
  await other.until(() => other.permissions.length === 1)
  decide.resolve()
  expect(await ended).toBe('end_turn')
  await other.until(() => other.withdrawn === 1)
  await other.until(() => other.text('agent_message_chunk') === 'Done.')
  expect(other.text('user_message_chunk')).toBe('make it')
  expect(owner.text('user_message_chunk')).toBe('')
  expect(other.calls()).toMatchObject([{ status: 'completed' }])
})

test('a prompt during the run of another screen waits for its turn, and can be cancelled alone', async () => {
  home.provider.script(gated('first', { type: 'text', chunks: ['Ours.'] }), say('Theirs.'))
  const owner = await start()
  const sessionId = await owner.session(home.cwd)
  const other = await start()
  await other.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  const ours = owner.prompt(sessionId, 'ours')
  await home.provider.request(1)
  const theirs = other.prompt(sessionId, 'theirs')
  const third = await start()
  await third.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  const dropped = third.prompt(sessionId, 'never mind')
  await third.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await dropped).toBe('cancelled')
  home.provider.release('first')
  expect([await ours, await theirs]).toEqual(['end_turn', 'end_turn'])
  expect(home.provider.requests).toHaveLength(2)
})

test('a prompt that waits for a run that is stopped fails, and is not sent later', async () => {
  home.provider.script(gated('never'), say('Again.'))
  const owner = await start()
  const sessionId = await owner.session(home.cwd)
  const other = await start()
  await other.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  const ours = owner.prompt(sessionId, 'ours')
  await home.provider.request(1)
  const theirs = expect(other.prompt(sessionId, 'the second one')).rejects.toThrow('The prompt was not sent.')
  await vi.waitFor(async () => expect(await inboxOf(sessionId)).toHaveLength(1), 10_000)
  await owner.agent.notify(sessionMethods.cancel, { sessionId })
  expect(await ours).toBe('cancelled')
  await theirs
  expect(await inboxOf(sessionId)).toEqual([])
  expect(await owner.prompt(sessionId, 'ours again')).toBe('end_turn')
  expect(JSON.stringify((await home.provider.request(2)).body)).not.toContain('the second one')
})

test('an error of the provider fails the prompt with its sentence', async () => {
  home.provider.script(
    { type: 'failure', error: 'invalid-request', message: 'No such thing.' },
    { type: 'failure', error: 'auth', message: 'Wrong key.' },
  )
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  await expect(editor.prompt(sessionId, 'hi')).rejects.toThrow('No such thing.')
  await expect(editor.prompt(sessionId, 'hi')).rejects.toMatchObject({ code: authRequired })
})

test('requests about unknown sessions and folders are refused with their name', async () => {
  const editor = await start()
  await expect(editor.prompt('nothing', 'hi')).rejects.toThrow('Session nothing is not open')
  await expect(editor.session('/does/not/exist')).rejects.toThrow('"/does/not/exist" does not exist')
  await expect(
    editor.agent.request(sessionMethods.load, {
      sessionId: '0199a1b2-0000-7000-8000-000000000000',
      cwd: home.cwd,
      mcpServers: [],
    }),
  ).rejects.toMatchObject({ code: -32002 })
})

test('an editor that quits during a run leaves it to be resumed, and an unused session is discarded', async () => {
  home.provider.script(gated('never', { type: 'text', chunks: ['Lost.'] }), say('Resumed.'))
  const editor = await start()
  const sessionId = await editor.session(home.cwd)
  await editor.session(home.cwd)
  const ended = editor.prompt(sessionId, 'go').catch(() => 'closed')
  await home.provider.request(1)
  await editor.quit()
  expect(await ended).toBe('closed')
  const next = await start({ capabilities: { session: { notices: {} } } })
  expect((await next.agent.request(sessionMethods.list, {})).sessions).toMatchObject([{ sessionId }])
  await next.agent.request(sessionMethods.load, { sessionId, cwd: home.cwd, mcpServers: [] })
  await next.until(() => next.told('notice').some(({ title }) => title.includes('/resume')))
  expect(await next.prompt(sessionId, '/resume')).toBe('end_turn')
  expect(next.text('agent_message_chunk')).toBe('Resumed.')
})

test('MCP servers of the editor give the session their tools once they have started', async () => {
  home.provider.script(...Array.from({ length: 100 }, () => say('Ready.')))
  const editor = await start()
  const server = fileURLToPath(new URL('../../../agent/src/mcp/testing/stdio-server.ts', import.meta.url))
  const { sessionId } = await editor.agent.request(sessionMethods.new, {
    cwd: home.cwd,
    mcpServers: [{ name: 'my tools', command: process.execPath, args: [server, 'serve', '/dev/null'], env: [] }],
  })
  const toolsOf = async (): Promise<string> => {
    await editor.prompt(sessionId, 'hi')
    return JSON.stringify(home.provider.requests.at(-1)?.body)
  }
  await expect.poll(toolsOf, { timeout: 20_000 }).toContain('mcp__my-tools__')
})

test('a change on one screen is told to the editor of another', async () => {
  const [one, two] = [await start(), await start()]
  const sessionId = await one.session(home.cwd)
  await two.agent.request(sessionMethods.resume, { sessionId, cwd: home.cwd })
  await one.agent.request(sessionMethods.setMode, { sessionId, modeId: 'plan' })
  await one.agent.request(sessionMethods.setTitle, { sessionId, title: 'Shared' })
  await two.until(() => two.told('current_mode_update').at(-1)?.currentModeId === 'plan')
  await two.until(() => two.told('config_option_update').at(-1)?.configOptions[0]?.currentValue === 'plan')
  await two.until(() => two.told('session_info_update').at(-1)?.title === 'Shared')
})

test('initialize is answered within 8 times of an empty program', { retry: 2 }, async () => {
  const request = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: 1 } }
  const times: Record<'bare' | 'answer', number[]> = { bare: [], answer: [] }
  for (let round = 0; round < 5; round++) {
    times.bare.push(await timed(['-e', 'console.log(0)']))
    times.answer.push(await timed([bundle, 'acp'], `${JSON.stringify(request)}\n`))
  }
  // The best of each: other tests run beside this one.
  expect(Math.min(...times.answer) / Math.min(...times.bare)).toBeLessThan(8)
})

/** Until the first byte of its output, in milliseconds. */
async function timed(args: readonly string[], input = ''): Promise<number> {
  const begun = performance.now()
  const child = spawn(process.execPath, args, { cwd: home.cwd, env: home.env, stdio: ['pipe', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  child.stdin.write(input)
  await once(child.stdout, 'data')
  const took = performance.now() - begun
  child.stdin.end()
  await ended
  return took
}
