// The frames on the page were captured here, from a real server. These tests fail if a frame has other members
// than its example.
import { onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import {
  clientFrameSchema,
  closeCodes,
  limits,
  operationNames,
  stateKeys,
  type ServerFrame,
} from '@tapetree/client/protocol'
import { memoryStore } from '@tapetree/session'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { afterEach, expect, test, vi } from 'vitest'
import type { RawData, WebSocket } from 'ws'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { operationAccess } from '../auth/operation-roles.ts'
import { askingGate } from '../http/testing/asking-gate.ts'
import { TestServer } from '../testing/running-server.ts'

const pageUrl = new URL('../../../../docs/reference/websocket.md', import.meta.url)
const page = readFileSync(pageUrl, 'utf8')
const examplePattern = /<!-- example: ([a-z -]+) -->\n\n```json\n([^]*?)```/g

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

test('every frame on the page matches what a server sends; UPDATE_WEBSOCKET_PAGE=1 writes them again', async () => {
  const captured = await capture()
  if (process.env['UPDATE_WEBSOCKET_PAGE'] === '1') writeFileSync(pageUrl, withExamples(captured))
  const told = readFileSync(pageUrl, 'utf8').matchAll(examplePattern)
  const shown = Object.fromEntries(Array.from(told, ([, name = '', json = '']) => [name, shapeOf(JSON.parse(json))]))
  expect(shown).toEqual(Object.fromEntries([...captured].map(([name, frame]) => [name, shapeOf(frame)])))
})

test('every client frame on the page is accepted by the server', () => {
  const sent = Array.from(page.matchAll(/<!-- sent -->\n\n```json\n([^]*?)```/g), ([, json = '']) => JSON.parse(json))
  expect(new Set(sent.map((frame) => clientFrameSchema.parse(frame).type))).toEqual(
    new Set(['attach', 'cmd', 'ping', 'presence']),
  )
})

test('every operation has a row with its role, and no other', () => {
  const rows = Array.from(sectionOf('Operations').matchAll(/^\| `([a-z_.]+)` +\| ([a-z]+) +\|/gm), ([, op, role]) => [
    op,
    role,
  ])
  expect(Object.fromEntries(rows)).toEqual(
    Object.fromEntries(operationNames.map((op) => [op, operationAccess[op].role])),
  )
  expect(rows).toHaveLength(operationNames.length)
})

test('every state key and every close code has a row, and no other', () => {
  const keys = Array.from(sectionOf('State').matchAll(/^\| `([a-z_]+)` +\|/gm), ([, key]) => key)
  expect(new Set(keys)).toEqual(new Set(stateKeys))
  const codes = Array.from(sectionOf('Close codes').matchAll(/^\| (\d{4}) +\|/gm), ([, code]) => Number(code))
  expect(new Set(codes)).toEqual(new Set(Object.values(closeCodes)))
})

test('the limits are those of the code', () => {
  const section = sectionOf('Limits')
  const kib = (bytes: number): string => (bytes >= 1024 ** 2 ? `${bytes / 1024 ** 2} MiB` : `${bytes / 1024} KiB`)
  const figures = [
    limits.maxBehindLines.toLocaleString('en'),
    ...[limits.maxBehindBytes, limits.maxFrameBytes, limits.maxTextLength, limits.maxLineBytes].map(kib),
    ...[limits.attachMs, limits.presenceLeaseMs].map((ms) => `${ms / 1000} s`),
  ]
  expect(figures.filter((figure) => !section.includes(figure))).toEqual([])
})

type Frame = ServerFrame | { seq: number; type: string }

/** One session, from the first screen to the end of its server, with a frame of each kind. */
async function capture(): Promise<Map<string, Frame>> {
  const readyToEnd = Promise.withResolvers<void>()
  const model = scriptedModel(
    script()
      .reasoning('A tool will tell.')
      .toolCall('call-1', 'act', { path: 'src' })
      .step()
      .text('All is well. 🌳')
      .do(() => readyToEnd.promise)
      .step()
      .text('You are welcome.'),
  )
  const sessions = agentSessions({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    gate: askingGate,
    hasSubagents: false,
  })
  const server = await TestServer.start(() => ({ sessions }))
  cleanUps.push(() => server.close())
  const id = await sessions.create({ cwd: '/', name: 'Look around' })
  const token = await server.token('drive')
  const attach = async (client: string, after?: object): Promise<Wire> => {
    const wire = new Wire(server.dial(id, token))
    await once(wire.socket, 'open')
    wire.say('attach', { client: { id: client, name: client, kind: 'web' }, after })
    return wire
  }
  const taken = new Map<string, Frame>()
  const take = async (name: string, frame: Promise<Frame>): Promise<Frame> => {
    taken.set(name, await frame)
    return taken.get(name) as Frame
  }

  const first = await attach('laptop')
  await take('attached snapshot', first.hears('attached'))
  const second = await attach('phone')
  await take(
    'state',
    first.hears('state', ({ data }) => data.key === 'presence'),
  )
  first.command('c-1', 'prompt', { text: 'Is all well?' })
  await take('line', first.hearsLine('message'))
  await take('ack', first.hearsAck('c-1'))
  const asked = await first.hearsLine('permission_request')
  const { request_id: requestId } = asked['permission_request'] as { request_id: string }
  second.command('c-2', 'permission.answer', { request_id: requestId, option_id: 'yes' })
  await second.hearsAck('c-2')
  first.command('c-3', 'permission.answer', { request_id: requestId, option_id: 'no' })
  await take('ack refused', first.hearsAck('c-3'))
  await take('delta', first.hearsText())
  first.command('c-4', 'queue.add', { message: 'Thank you.' })
  await take('queue updated', first.hears('queue_updated'))
  first.command('c-1', 'prompt', { text: 'Is all well?' })
  await take(
    'ack dup',
    first.hearsAck('c-1', ({ dup }) => dup === true),
  )
  readyToEnd.resolve()
  await take('queue sending', first.hears('queue_message_sending'))
  await take('queue sent', first.hears('queue_message_sent'))
  await vi.waitFor(() => expect(sessions.opened.map(({ driver }) => driver.isBusy)).toEqual([false]))
  first.say('ping', { n: 1, seen: 0 })
  const { data } = (await take('pong', first.hears('pong'))) as Extract<ServerFrame, { type: 'pong' }>
  const again = await attach('laptop', data.head)
  await take('attached tail', again.hears('attached'))
  const gone = new Wire(server.dial('no-such-session', token))
  await once(gone.socket, 'open')
  gone.say('attach', { client: { id: 'lost' } })
  await take('gone', gone.hears('gone'))
  const farewell = take('bye', again.hears('bye'))
  await server.server.close()
  await farewell
  return taken
}

/** A client that records its frames. */
class Wire {
  readonly socket: WebSocket
  readonly #heard: Frame[] = []
  readonly #waiting = new Set<() => void>()

  constructor(socket: WebSocket) {
    this.socket = socket
    cleanUps.push(() => socket.terminate())
    socket.on('message', (data: RawData) => {
      this.#heard.push(JSON.parse((data as Buffer).toString()) as Frame)
      for (const look of this.#waiting) look()
    })
  }

  say(type: string, data: unknown): void {
    this.socket.send(JSON.stringify({ type, data }))
  }

  command(id: string, op: string, args: object): void {
    this.say('cmd', { id, op, args })
  }

  hears<Type extends ServerFrame['type']>(
    type: Type,
    is: (frame: Extract<ServerFrame, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<ServerFrame, { type: Type }>> {
    return this.#first((frame): frame is never => frame.type === type && is(frame as never))
  }

  hearsText(): Promise<Frame> {
    return this.#first(
      (frame): frame is Frame => frame.type === 'delta' && 'data' in frame && frame.data.kind === 'text',
    )
  }

  hearsAck(id: string, is: (ack: { dup?: boolean | undefined }) => boolean = () => true): Promise<Frame> {
    return this.hears('ack', ({ data }) => data.id === id && is(data))
  }

  hearsLine(type: string): Promise<Frame & Record<string, unknown>> {
    return this.#first((frame): frame is never => 'seq' in frame && frame.type === type)
  }

  #first<T extends Frame>(is: (frame: Frame) => frame is T): Promise<T> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.#heard.find(is)
        if (!found) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
  }
}

function withExamples(captured: ReadonlyMap<string, Frame>): string {
  return page.replaceAll(examplePattern, (whole, name: string) => {
    const frame = captured.get(name)
    return frame ? `<!-- example: ${name} -->\n\n\`\`\`json\n${JSON.stringify(frame)}\n\`\`\`` : whole
  })
}

/** Names of members and types of values: ids and times differ each time. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf)
  if (typeof value !== 'object' || value === null) return value === null ? 'null' : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
}

/** From a heading of the second level to the next. */
function sectionOf(heading: string): string {
  const start = page.indexOf(`\n## ${heading}\n`)
  const end = page.indexOf('\n## ', start + 1)
  return page.slice(start, end === -1 ? undefined : end)
}
