import { operationNames, type Ack } from '@tapetree/client/protocol'
import { onlyModel } from '@tapetree/agent'
import type { Expansion } from '@tapetree/agent/run'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { memoryStore, type Session } from '@tapetree/session'
import type { DiskLine } from '@tapetree/session/format'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { RawData, WebSocket } from 'ws'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { askingGate } from '../http/testing/asking-gate.ts'
import { TestServer } from '../testing/running-server.ts'
import { operationAccess, roles } from './operation-roles.ts'

test('the guide has a row for each role, from the least rights to the most', () => {
  const page = readFileSync(new URL('../../../../docs/guides/run-a-server.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('\n## Tokens and roles'), page.indexOf('A `drive` client manages tokens'))
  expect(Array.from(table.matchAll(/^\| `(\w+)` +\|/gm), ([, role]) => role)).toEqual(roles)
})

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A session with one socket for the role `queue`, and one for `drive`. */
async function start(options?: Parameters<typeof TestServer.start>[0]): Promise<Stage> {
  const server = await TestServer.start(options)
  cleanUps.push(() => server.close())
  const id = await server.sessions.create({ cwd: '/' })
  const queue = await server.token('queue')
  const [asQueue, asDriver] = [await dial(server, id, queue), await dial(server, id, await server.token('drive'))]
  const { session } = await server.sessions.get(id)
  return { server, id, queue, asQueue, asDriver, session }
}

interface Stage {
  server: TestServer
  id: string
  queue: string
  asQueue: Command
  asDriver: Command
  session: Session
}

type Command = (op: string, args?: object) => Promise<Ack>

async function dial(server: TestServer, sessionId: string, token: string): Promise<Command> {
  const socket: WebSocket = server.dial(sessionId, token)
  cleanUps.push(() => socket.terminate())
  const acks = new Map<string, (ack: Ack) => void>()
  let count = 0
  const { promise: attached, resolve } = Promise.withResolvers<void>()
  socket.on('message', (data: RawData) => {
    const frame = JSON.parse((data as Buffer).toString()) as { type: string; data: Ack }
    if (frame.type === 'attached') resolve()
    if (frame.type === 'ack') acks.get(frame.data.id)?.(frame.data)
  })
  await once(socket, 'open')
  const client = `client-${token.slice(9, 25)}`
  socket.send(JSON.stringify({ type: 'attach', data: { client: { id: client } } }))
  await attached
  return (op, args = {}) => {
    const id = `${client}-${++count}`
    socket.send(JSON.stringify({ type: 'cmd', data: { id, op, args } }))
    return new Promise((answered) => acks.set(id, answered))
  }
}

async function typesIn(session: Session): Promise<string[]> {
  const types: string[] = []
  for await (const line of session.lines()) {
    if (line.type === 'line') types.push((JSON.parse(line.text) as DiskLine).type)
  }
  return types
}

describe('a token with the role queue, in an idle session', () => {
  test('queues a follow-up that is held, and starts no run', async () => {
    const { asQueue, session } = await start()
    expect(await asQueue('follow_up', { text: 'do this' })).toMatchObject({
      ok: true,
      result: { outcome: 'queued', run_id: null },
    })
    expect(await asQueue('queue.add', { message: 'and this' })).toMatchObject({ ok: true })
    expect(session.inbox.messages).toMatchObject([
      { message: 'do this', held: true },
      { message: 'and this', held: true },
    ])
    expect(await typesIn(session)).not.toContain('run_start')
  })

  test('starts no run by editing or moving a queued message', async () => {
    const { asQueue, asDriver, session } = await start()
    await asDriver('queue.hold', {})
    const added = await asDriver('queue.add', { message: 'later' })
    const { id } = added.result as { id: string }
    await asDriver('queue.hold', { id })
    await asDriver('queue.release', {})
    expect(await asQueue('queue.edit', { id, message: 'now' })).toMatchObject({ ok: true })
    expect(await asQueue('queue.move', { id, before_id: null })).toMatchObject({ ok: true })
    expect(await asQueue('queue.release', { id })).toMatchObject({ ok: false, error: { type: 'role-too-small' } })
    expect(session.inbox.messages).toMatchObject([{ message: 'now', held: true }])
    expect(await typesIn(session)).not.toContain('run_start')
  })

  test('queues a message over HTTP that only the role drive can release', async () => {
    const { server, id, queue, asDriver, session } = await start()
    const path = `/api/sessions/${id}/queue`
    const { status, body } = await server.ask(path, { token: queue, json: { message: 'do this' } })
    expect(status).toBe(201)
    const { id: messageId } = body as { id: string }
    const release = { method: 'PATCH', token: queue, json: { held: false } }
    expect(await server.ask(`${path}/${messageId}`, release)).toMatchObject({ status: 403 })
    expect((await server.ask(path, { token: queue })).body).toMatchObject({ messages: [{ held: true }] })
    expect(await typesIn(session)).not.toContain('run_start')
    expect(await asDriver('queue.release', { id: messageId })).toMatchObject({ ok: true })
    await vi.waitFor(async () => expect(await typesIn(session)).toContain('run_end'))
    expect(session.inbox.messages).toEqual([])
  })

  test('runs no slash command: its text is delivered as typed', async () => {
    const expanded: string[] = []
    const store = memoryStore()
    const expand = async (typed: string): Promise<Expansion> => {
      expanded.push(typed)
      return { type: 'done', say: 'deployed' }
    }
    const sessions = agentSessions({ store, models: onlyModel(scriptedModel(script())), tools: () => [], expand })
    const { asQueue, session } = await start(() => ({ sessions }))
    expect(await asQueue('follow_up', { text: '/deploy production' })).toMatchObject({ result: { outcome: 'queued' } })
    expect(expanded).toEqual([])
    expect(session.inbox.messages).toMatchObject([{ message: '/deploy production', held: true }])
  })
})

describe('a token with the role queue, while a run waits for permission', () => {
  async function startAsking(): Promise<Stage> {
    const store = memoryStore()
    const model = scriptedModel(script().toolCall('call-1', 'act', {}).step().text('Done.').step().text('And that.'))
    const sessions = agentSessions({
      store,
      models: onlyModel(model),
      tools: () => [model.tool('act')],
      gate: askingGate,
    })
    const stage = await start(() => ({ sessions }))
    await stage.asDriver('prompt', { text: 'act' })
    await vi.waitFor(() => expect(stage.session.pendingPermissions).toHaveLength(1))
    return stage
  }

  test('cannot steer by any operation, and the request stays pending', async () => {
    const { asQueue, asDriver, session } = await startAsking()
    const left = await asQueue('queue.add', { message: 'later' })
    const { id } = left.result as { id: string }
    const refused = { ok: false, error: { type: 'role-too-small', needs: 'drive' } }
    expect(await asQueue('steer', { text: 'stop' })).toMatchObject(refused)
    expect(await asQueue('queue.add', { message: 'stop', delivery: 'steer' })).toMatchObject(refused)
    expect(await asQueue('queue.edit', { id, delivery: 'steer' })).toMatchObject(refused)
    expect(await asQueue('queue.clear', {})).toMatchObject(refused)
    expect(session.pendingPermissions).toHaveLength(1)
    expect(session.inbox.messages).toMatchObject([{ id, delivery: 'follow-up', held: false }])
    const [{ requestId } = { requestId: '' }] = session.pendingPermissions
    await asDriver('permission.answer', { request_id: requestId, option_id: 'yes' })
    await vi.waitFor(() => expect(session.inbox.messages).toEqual([]))
  })
})

test('every operation declares the role it needs', () => {
  expect(Object.keys(operationAccess).sort()).toEqual([...operationNames].sort())
})
