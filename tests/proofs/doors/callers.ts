import { scriptedModel } from '@tapetree/agent/testing'
import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { AgentDriver, LiveSessions, startServer, TokenStore, type RunningServer } from '@tapetree/server'
import type { SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { once } from 'node:events'
import { join } from 'node:path'
import { ask, type Answer } from '../../../packages/server/src/testing/running-server.ts'
import { pick, type PartContext } from './part-context.ts'

const steps = 60
const keys = ['k1', 'k2', 'k3']
const clientIds = ['laptop', 'phone', 'desk', 'rest', 'server', 'task']
const reserved = new Set(['rest', 'server', 'task'])

/** What a key was used for, and what came of it. */
interface Used {
  request: string
  answer: string
}

/** A request that has an effect once, and what of its answer must stay the same. */
interface KeyedRequest {
  path: string
  body: Record<string, unknown>
  told: (body: Record<string, unknown>) => unknown
}

/**
 * Tokens that use the same idempotency keys and the same client ids, at random and at once, with restarts in between, held against a model:
 * a key answers its own token, operation and body alone; a client id belongs to one token at every door; and the log has each effect once,
 * by the token that caused it.
 */
export async function tryCallers({ folder, random, complain }: PartContext): Promise<{ requests: number }> {
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const callers = await Promise.all(
    [1, 2, 3].map(async () => {
      const { token, record } = await tokens.create({ tenant: 'default', role: 'drive' })
      return { token, id: record.id }
    }),
  )
  let running = await start(folder, tokens)
  const session = await running.sessions.create({ cwd: folder })
  await hold(running, session)
  const used = new Map<string, Used>()
  const owners = new Map<string, string>()
  const effects = new Map<string, number>()
  let requests = 0
  try {
    for (let step = 0; step < steps; step++) {
      if (step % 20 === 19) {
        await running.close()
        running = await start(folder, tokens)
        // Client ids are known as long as the server runs.
        owners.clear()
      }
      if (random() < 0.6) await tryKey()
      else await tryClientId()
    }
    await checkLog()
    return { requests }
  } finally {
    await running.close()
  }

  async function tryKey(): Promise<void> {
    const caller = pick(callers, random)
    const key = pick(keys, random)
    const request = pick(requestsOf(session, folder), random)
    const name = JSON.stringify([request.path, request.body])
    // Making a session is no command of a session: its keys are apart.
    const scope = request.path.includes('/queue') || request.path.endsWith('/prompt') ? 'commands' : request.path
    const place = [caller.id, scope, key].join(' ')
    const known = used.get(place)
    const count = 1 + Math.floor(random() * 4)
    const answers = await Promise.all(Array.from({ length: count }, () => post(caller.token, request, key)))
    requests += count
    for (const { status, body, text } of answers) {
      const what = `${request.path} with ${key}, ${count} at once`
      if (text.includes(folder) && status >= 400) complain(`${what}: the answer names ${folder}`)
      if (known && known.request !== name) {
        if (status !== 422) complain(`${what} and another body: ${status} ${text}`)
        continue
      }
      if (status >= 300) {
        complain(`${what}: ${status} ${text}`)
        continue
      }
      const answer = JSON.stringify(request.told(body as Record<string, unknown>))
      const first = used.get(place) ?? { request: name, answer }
      used.set(place, first)
      if (answer !== first.answer) complain(`${what}: ${answer} after ${first.answer}`)
    }
    if (!known && request.path.endsWith('/queue')) effects.set(caller.id, (effects.get(caller.id) ?? 0) + 1)
  }

  async function tryClientId(): Promise<void> {
    const caller = pick(callers, random)
    const clientId = pick(clientIds, random)
    const owner = owners.get(clientId)
    const isFree = !reserved.has(clientId) && (owner === undefined || owner === caller.id)
    const door = pick([byRest, byStream, bySocket], random)
    const isLetIn = await door(caller.token, clientId)
    requests++
    if (isLetIn !== isFree) {
      complain(`${door.name} as ${clientId}, which is ${isFree ? 'free' : 'taken'}: ${isLetIn ? 'let in' : 'refused'}`)
    }
    if (isLetIn) owners.set(clientId, caller.id)
    if (isLetIn && door === byRest) effects.set(caller.id, (effects.get(caller.id) ?? 0) + 1)
  }

  async function byRest(token: string, clientId: string): Promise<boolean> {
    const { status } = await ask(`/api/sessions/${session}/queue`, {
      url: running.server.url,
      token,
      json: { message: 'by a client' },
      headers: { 'x-client-id': clientId },
    })
    return status === 201
  }

  async function byStream(token: string, clientId: string): Promise<boolean> {
    const address = `${running.server.url}/api/sessions/${session}/events/stream?client_id=${clientId}`
    const response = await fetch(address, { headers: { authorization: `Bearer ${token}` } })
    await response.body?.cancel()
    return response.ok
  }

  async function bySocket(token: string, clientId: string): Promise<boolean> {
    const address = `${running.server.url.replace('http', 'ws')}/api/sessions/${session}/ws`
    const socket = new WebSocket(address, ['tapetree.v1', `bearer.${token}`])
    await once(socket, 'open')
    socket.send(JSON.stringify({ type: 'attach', data: { client: { id: clientId } } }))
    const heard = await Promise.race([
      once(socket, 'message').then(() => true),
      once(socket, 'close').then(() => false),
    ])
    socket.close()
    return heard
  }

  function post(token: string, { path, body }: KeyedRequest, key: string): Promise<Answer> {
    return ask(path, { url: running.server.url, token, json: body, headers: { 'idempotency-key': key } })
  }

  async function checkLog(): Promise<void> {
    const live = await running.sessions.get(session)
    const added = new Map<string, number>()
    for await (const stored of live.session.lines()) {
      if (stored.type !== 'line') continue
      const { submission, cause } = JSON.parse(stored.text) as {
        submission?: { action: string }
        cause?: { token?: string; client?: string }
      }
      const { token = 'nobody', client = '' } = cause ?? {}
      if (submission?.action === 'add') added.set(token, (added.get(token) ?? 0) + 1)
      if (client === 'server' || client === 'task') complain(`the log has a command of ${client}`)
    }
    for (const { id } of callers) {
      const [has, wanted] = [added.get(id) ?? 0, effects.get(id) ?? 0]
      if (has !== wanted) complain(`the log has ${has} messages of one token instead of ${wanted}`)
    }
  }
}

function requestsOf(session: string, folder: string): KeyedRequest[] {
  const queue = `/api/sessions/${session}/queue`
  return [
    ...['one', 'two'].map((message) => ({ path: queue, body: { message }, told: ({ id }: { id?: unknown }) => id })),
    ...['one', 'two'].map((name) => ({
      path: '/api/sessions',
      body: { cwd: folder, name },
      told: ({ id }: { id?: unknown }) => id,
    })),
    ...['one', 'two'].map((name) => ({
      path: `/api/sessions/${session}/fork`,
      body: { name },
      told: ({ id }: { id?: unknown }) => id,
    })),
  ]
}

interface Running {
  server: RunningServer
  sessions: LiveSessions
  close: () => Promise<void>
}

async function start(folder: string, tokens: TokenStore): Promise<Running> {
  const store: SessionStore = openFileStore({ folder: join(folder, 'sessions') })
  const model = scriptedModel([], { otherwise: () => [{ type: 'text_delta', text: 'Said.' }] })
  const options = { models: onlyModel(model), tools: () => [], gate: () => allowAll, hasSubagents: false, cwd: folder }
  const sessions = new LiveSessions({
    store,
    openDriver: async (sessionId) =>
      new AgentDriver({ agent: await AgentSession.open({ ...options, store, sessionId }) }),
    create: async ({ model: _model, agent: _agent, ...header }) => {
      await using session = await store.create(header)
      return session.id
    },
  })
  const server = await startServer({
    tenants: new Map([['default', sessions]]),
    tokens,
    api: { roots: () => [folder] },
  })
  const close = async (): Promise<void> => {
    await server.close()
    await store.close()
  }
  return { server, sessions, close }
}

/** Messages stay where they are, so that they can be counted. */
async function hold({ sessions }: Running, session: string): Promise<void> {
  const live = await sessions.get(session)
  await live.perform('hold', 'owner', { op: 'queue.hold' })
}
