import { memoryStore, type Session } from '@tapetree/session'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { defineTool, type GateCall, type Access } from '../tools/tool.ts'
import { PermissionGate, type GatePolicy } from './gate.ts'
import { Requests, type PermissionRequest } from './requests.ts'
import type { Rule } from './rules.ts'

const place = { cwd: '/repo', home: '/home/me' }
const { signal: never } = new AbortController()

function command(text: string, callId = 'call'): GateCall {
  const access: Access[] = [{ type: 'command', command: text, cwd: place.cwd }]
  return { runId: 'run', callId, tool: 'bash', readOnly: false, input: { command: text }, access }
}

function gateOn(session: Session, policy: Partial<GatePolicy> = {}): { gate: PermissionGate; requests: Requests } {
  const requests = new Requests(session)
  return { requests, gate: new PermissionGate({ requests, policy: () => ({ mode: 'ask', ...place, ...policy }) }) }
}

/** The pending requests, once there are this many. */
async function waiting(requests: Requests, count: number): Promise<PermissionRequest[]> {
  await expect.poll(() => requests.pending).toHaveLength(count)
  return requests.pending
}

test('a call that only reads is allowed and appends nothing to the log', async () => {
  await using session = await memoryStore().create()
  const { gate, requests } = gateOn(session)
  expect(await gate.admit(command('git log | head'), never)).toEqual({ type: 'allowed' })
  expect(requests.pending).toEqual([])
})

test('a call that a rule forbids is denied with a reason, without a request', async () => {
  await using session = await memoryStore().create()
  const { gate } = gateOn(session, { rules: { project: [{ effect: 'deny', type: 'command', match: 'git push' }] } })
  expect(await gate.admit(command('ls && git push'), never)).toEqual({
    type: 'denied',
    reason: 'A rule forbids `git`.',
  })
})

test('a request shows the whole call, its reason and the possible answers', async () => {
  await using session = await memoryStore().create()
  const { gate, requests } = gateOn(session)
  const verdict = gate.admit(command('mkdir -p "a\u202eb"'), never)
  const [request] = await waiting(requests, 1)
  expect(request).toMatchObject({
    runId: 'run',
    callId: 'call',
    tool: 'bash',
    input: { command: 'mkdir -p "a\u202eb"' },
  })
  expect(request?.title).toContain('Run in /repo: mkdir -p "a\\u{202e}b"')
  expect(request?.options.map(({ kind }) => kind)).toEqual(['allow_once', 'reject_once'])
  await requests.answer({ requestId: request!.requestId, outcome: 'rejected', text: 'use another folder' })
  expect(await verdict).toEqual({ type: 'denied', reason: 'The user did not allow this: use another folder' })
})

test('a call that is too long to be shown in full is not asked about, and does not run', async () => {
  await using session = await memoryStore().create()
  const { gate, requests } = gateOn(session)
  session.subscribe(({ line }) => {
    if (line.type !== 'permission_request') return
    void requests.answer({ requestId: line.permissionRequest.requestId, outcome: 'allowed' })
  })
  const write = (content: string): GateCall => ({
    ...command(''),
    tool: 'write',
    input: { path: '/repo/a.txt', content },
    access: [{ type: 'write', path: '/repo/a.txt' }],
  })
  expect(await gate.admit(write('x'.repeat(180_000)), never)).toEqual({ type: 'allowed' })
  expect(await gate.admit({ ...write('x'.repeat(190_000)), callId: 'longer' }, never)).toEqual({
    type: 'denied',
    reason: 'This is too long to be shown for permission. Do it in parts.',
  })
})

test('a request to overwrite a file names the change, and reading only as a reason', async () => {
  await using session = await memoryStore().create()
  const { gate, requests } = gateOn(session, {
    rules: { user: [{ effect: 'ask', type: 'read', match: '/repo/b.txt' }] },
  })
  const overwrite = (path: string): GateCall => ({
    runId: 'run',
    callId: path,
    tool: 'write',
    readOnly: false,
    input: { path, content: '' },
    access: [
      { type: 'read', path },
      { type: 'write', path },
    ],
  })
  for (const path of ['/repo/a.txt', '/repo/b.txt']) void gate.admit(overwrite(path), never)
  const titles = (await waiting(requests, 2)).map(({ title }) => title)
  expect(titles).toEqual([
    'Write /repo/a.txt\nIt writes /repo/a.txt.',
    'Write /repo/b.txt\nA rule requires permission to read /repo/b.txt.\nIt writes /repo/b.txt.',
  ])
})

test('a grant for the session holds without another request, also after a restart, and covers nothing else', async () => {
  const store = memoryStore()
  const first = await store.create()
  const { gate, requests } = gateOn(first)
  const verdict = gate.admit(command('npm run test'), never)
  const [request] = await waiting(requests, 1)
  expect(request?.options.find(({ kind }) => kind === 'allow_always')?.label).toBe(
    'Allow in this session: `npm run test`',
  )
  await requests.answer({ requestId: request!.requestId, outcome: 'allowed', optionId: 'allow_always' })
  expect(await verdict).toEqual({ type: 'allowed' })
  expect(await gate.admit(command('npm run test', 'again'), never)).toEqual({ type: 'allowed' })
  await first.close()

  await using again = await store.open(first.id)
  const { gate: later, requests: laterRequests } = gateOn(again)
  expect(await later.admit(command('ls && npm run test', 'c'), never)).toEqual({ type: 'allowed' })
  const other = later.admit(command('npm run test && npm run deploy', 'd'), never)
  const [asked] = await waiting(laterRequests, 1)
  await laterRequests.answer({ requestId: asked!.requestId, outcome: 'rejected' })
  expect(await other).toMatchObject({ type: 'denied' })
})

test('a grant for the project is offered if it can be kept, and keeps what the request showed', async () => {
  await using session = await memoryStore().create()
  const requests = new Requests(session)
  const kept: unknown[] = []
  const keepRules = async (rules: readonly Rule[]): Promise<void> => void kept.push(...rules)
  const gate = new PermissionGate({ requests, policy: () => ({ mode: 'ask', ...place }), keepRules })
  const verdict = gate.admit(command('npm run test'), never)
  const [request] = await waiting(requests, 1)
  expect(request?.options.map(({ label }) => label)).toEqual([
    'Allow once',
    'Allow in this session: `npm run test`',
    'Allow in this project: `npm run test`',
    'Do not allow',
  ])
  await requests.answer({ requestId: request!.requestId, outcome: 'allowed', optionId: 'allow_project' })
  expect(await verdict).toEqual({ type: 'allowed' })
  expect(kept).toEqual([{ effect: 'allow', type: 'command', match: ['npm', 'run', 'test'] }])
  expect(await gate.admit(command('npm run test', 'again'), never)).toEqual({ type: 'allowed' })
})

test('a grant in the log that is not an allow rule is ignored', async () => {
  await using session = await memoryStore().create()
  const grants = [{ rules: 'all' }, { rules: [{ effect: 'allow', type: 'everything' }] }, { more: true }]
  for (const [index, grant] of grants.entries()) {
    const requestId = `r${index}`
    const question = { runId: 'run', tool: 'bash', title: '', input: {}, options: [], requestId }
    await session.append({ type: 'permission_request', permissionRequest: question })
    await session.append({ type: 'permission_result', permissionResult: { requestId, outcome: 'allowed', grant } })
  }
  const { gate, requests } = gateOn(session)
  const verdict = gate.admit(command('npm run test'), never)
  const [request] = await waiting(requests, 1)
  await requests.answer({ requestId: request!.requestId, outcome: 'rejected' })
  expect(await verdict).toEqual({ type: 'denied', reason: 'The user did not allow this.' })
})

test('a change of mode takes effect with the next call', async () => {
  await using session = await memoryStore().create()
  let mode: GatePolicy['mode'] = 'plan'
  const gate = new PermissionGate({ requests: new Requests(session), policy: () => ({ ...place, mode }) })
  expect(await gate.admit(command('npm test'), never)).toMatchObject({ type: 'denied' })
  mode = 'auto'
  expect(await gate.admit(command('npm test'), never)).toEqual({ type: 'allowed' })
})

test("with `whenUnanswered: 'deny'`, a call that needs a request is denied", async () => {
  await using session = await memoryStore().create()
  const requests = new Requests(session)
  const gate = new PermissionGate({ requests, policy: () => ({ mode: 'ask', ...place }), whenUnanswered: 'deny' })
  expect(await gate.admit(command('npm test'), never)).toMatchObject({ type: 'denied' })
  expect(await gate.admit(command('ls'), never)).toEqual({ type: 'allowed' })
  expect(requests.pending).toEqual([])
})

test('several requests are pending at once and are answered in any order; the first answer to each wins', async () => {
  await using session = await memoryStore().create()
  const { gate, requests } = gateOn(session)
  const verdicts = ['a', 'b', 'c'].map((callId) => gate.admit(command(`npm run ${callId}`, callId), never))
  const asked = await waiting(requests, 3)
  const idOf = (callId: string): string => asked.find((each) => each.callId === callId)!.requestId
  const answers = await Promise.all([
    requests.answer({ requestId: idOf('c'), outcome: 'allowed', clientId: 'phone' }),
    requests.answer({ requestId: idOf('c'), outcome: 'rejected', clientId: 'desk' }),
    requests.answer({ requestId: idOf('a'), outcome: 'rejected' }),
    requests.answer({ requestId: idOf('b'), outcome: 'allowed' }),
  ])
  expect(answers.map(({ type }) => type)).toEqual(['taken', 'too-late', 'taken', 'taken'])
  expect((await Promise.all(verdicts)).map(({ type }) => type)).toEqual(['denied', 'allowed', 'allowed'])
  expect(await requests.answer({ requestId: idOf('c'), outcome: 'rejected' })).toEqual({
    type: 'too-late',
    by: { requestId: idOf('c'), outcome: 'allowed', clientId: 'phone' },
  })
})

test('stopping a run withdraws all its requests before the run ends', async () => {
  const asking = defineTool({
    name: 'look',
    description: 'Looks at something.',
    schema: z.strictObject({ host: z.string() }),
    readOnly: true,
    access: ({ host }) => [{ type: 'fetch', url: `https://${host}/` }],
    run: () => Promise.resolve({ content: 'seen' }),
  })
  const twoCalls = script().toolCall('a', 'look', { host: 'a.example' }).toolCall('b', 'look', { host: 'b.example' })
  const agent = await TestAgent.open({
    model: scriptedModel(twoCalls),
    tools: [asking],
    gate: (requests) => new PermissionGate({ requests, policy: () => ({ mode: 'ask', ...place }) }),
  })
  const results: string[] = []
  agent.session.subscribe(({ line }) => {
    if (line.type === 'permission_result') results.push(line.permissionResult.outcome)
  })
  const ended = agent.prompt('look')
  await waiting(agent.requests, 2)
  agent.abort()
  expect(await ended).toMatchObject({ outcome: 'aborted' })
  expect(agent.requests.pending).toEqual([])
  expect(results).toEqual(['cancelled', 'cancelled'])
  const types = await agent.lineTypes()
  expect(types.lastIndexOf('permission_result')).toBeLessThan(types.indexOf('run_end'))
  expect(types).not.toContain('tool_start')
  await agent.close()
})
