// A client written from the page docs/reference/websocket.md alone: it imports nothing of the protocol.
import { onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { memoryStore, type Session } from '@tapetree/session'
import { afterEach, expect, test, vi } from 'vitest'
import { WebSocket, type RawData } from 'ws'
import { agentSessions } from '../drivers/agent-sessions.ts'
import { TestServer } from '../testing/running-server.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Line {
  seq: number
  type: string
  id: string
  parent_id?: string | null
  leaf?: { target_id: string | null }
}

interface Snapshot {
  head: { seq: number; crc: string }
  lines: { seq: number; text: string }[]
  before: string | null
  leaf_id: string | null
}

class IndependentClient {
  path: Line[] = []
  attaches = 0
  readonly #url: string
  readonly #token: string
  #socket: WebSocket | undefined

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
    this.#attach()
  }

  get ids(): string[] {
    return this.path.map(({ id }) => id)
  }

  async loadAll(): Promise<void> {
    let before = this.path[0]?.seq ?? 0
    while (this.path[0]?.parent_id !== null && before > 1) {
      const response = await fetch(`${this.#url}/events?before=${before}&limit=200`, {
        headers: { authorization: `Bearer ${this.#token}` },
      })
      const { events } = (await response.json()) as { events: Line[] }
      for (const line of events.toReversed()) if (line.id === this.path[0]?.parent_id) this.path.unshift(line)
      before = events[0]?.seq ?? 0
    }
  }

  command(op: string, args: object): void {
    this.#socket?.send(JSON.stringify({ type: 'cmd', data: { id: crypto.randomUUID(), op, args } }))
  }

  close(): void {
    this.#socket?.terminate()
  }

  #attach(): void {
    this.attaches++
    this.#socket?.terminate()
    const url = `${this.#url.replace('http', 'ws')}/ws`
    const socket = new WebSocket(url, ['tapetree.v1', `bearer.${this.#token}`])
    this.#socket = socket
    const data = { client: { id: crypto.randomUUID() }, window: 3 }
    socket.on('open', () => socket.send(JSON.stringify({ type: 'attach', data })))
    socket.on('message', (raw: RawData) => {
      const frame = JSON.parse((raw as Buffer).toString()) as Line & { data?: { snapshot?: Snapshot } }
      if (socket !== this.#socket) return
      if (typeof frame.seq === 'number') this.#takeLine(frame)
      else if (frame.data?.snapshot) this.#takeSnapshot(frame.data.snapshot)
    })
  }

  #takeSnapshot({ lines, before, leaf_id: leafId }: Snapshot): void {
    this.path = lines.map(({ seq, text }) => ({ ...(JSON.parse(text) as Line), seq }))
    expect(this.path.at(-1)?.id ?? null).toBe(leafId)
    expect(before).toBe(this.path[0]?.parent_id ? this.path[0].id : null)
  }

  #takeLine(line: Line): void {
    if (line.type === 'leaf') this.#cutAfter(line.leaf?.target_id ?? null)
    else if (line.parent_id !== undefined && line.type !== 'label' && line.type !== 'session_info') {
      if (this.#cutAfter(line.parent_id)) this.path.push(line)
    }
  }

  #cutAfter(id: string | null): boolean {
    const last = id === null ? -1 : this.path.findIndex((entry) => entry.id === id)
    if (id !== null && last === -1) {
      this.#attach()
      return false
    }
    this.path = this.path.slice(0, last + 1)
    return true
  }
}

async function pathOf(session: Session): Promise<string[]> {
  const ids: string[] = []
  for (let id = session.leafId; id !== null;) {
    const entry = await session.getEntry(id)
    ids.unshift(entry.id)
    id = entry.parentId
  }
  return ids
}

test('a client that knows only the page has the path of the session at any time', async () => {
  const model = scriptedModel(script(), { otherwise: () => script().toolCall('c', 'act', {}).step().text('Done.') })
  const store = memoryStore()
  const sessions = agentSessions({
    store,
    models: onlyModel(model),
    tools: () => [model.tool('act')],
    hasSubagents: false,
  })
  const server = await TestServer.start(() => ({ sessions }))
  cleanUps.push(() => server.close())
  const id = await sessions.create({ cwd: '/' })
  const { session } = await sessions.get(id)
  const token = await server.token('drive')
  const open = (): IndependentClient => {
    const client = new IndependentClient(`${server.server.url}/api/sessions/${id}`, token)
    cleanUps.push(() => client.close())
    return client
  }
  const agree = (...clients: IndependentClient[]): Promise<void> =>
    vi.waitFor(async () => {
      expect(session.openRun).toBeNull()
      for (const client of clients) {
        await client.loadAll()
        expect(client.ids).toEqual(await pathOf(session))
      }
    })
  const prompt = async (text: string): Promise<void> => {
    const before = session.info.messageCount
    await server.ask(`/api/sessions/${id}/prompt`, { token, json: { text } })
    await vi.waitFor(() => expect([session.openRun, session.info.messageCount > before]).toEqual([null, true]))
  }
  const early = open()
  for (const text of ['one', 'two', 'three']) await prompt(text)
  await agree(early)
  expect(early.path.length).toBeGreaterThan(9)

  // A late one starts with a few lines, and loads the others.
  const late = open()
  const unaware = open()
  await agree(late)
  await vi.waitFor(() => expect(unaware.path.length).toBeGreaterThan(0))
  expect(unaware.path.length).toBeLessThan(9)

  // Back to an early entry: known to those that have loaded it.
  const target = late.ids[2] ?? ''
  late.command('label', { entry_id: target, label: 'here' })
  late.command('rename', { name: 'Renamed' })
  late.command('branch', { entry_id: target })
  await vi.waitFor(() => expect(session.leafId).toBe(target))
  await prompt('four')
  await agree(early, late, unaware)
  expect([early.attaches, late.attaches, unaware.attaches]).toEqual([1, 1, 2])
  late.command('branch', { entry_id: null })
  await vi.waitFor(() => expect(session.leafId).toBeNull())
  await prompt('five')
  await agree(early, late, unaware)
})
