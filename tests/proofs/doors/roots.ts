import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { scriptedModel } from '@tapetree/agent/testing'
import {
  AgentDriver,
  LiveSessions,
  Metrics,
  recoverSessions,
  startServer,
  storeInside,
  TokenStore,
  type Role,
  type RunningServer,
} from '@tapetree/server'
import { roles } from '@tapetree/client/protocol'
import { text, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir, readFile, realpath, symlink } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { ask } from '../../../packages/server/src/testing/running-server.ts'
import { pick, type PartContext } from './part-context.ts'

interface Place {
  root: string
  /** Whether the server or only its tokens are limited to the root. */
  limited: 'server' | 'tokens'
  server: RunningServer
  sessions: LiveSessions
  store: SessionStore
  /** Of role `drive`. */
  token: string
  /** One for each role, all with the same folder. */
  tokens: ReadonlyMap<Role, string>
}

interface Made {
  id: string
  /** The root that it is inside of; undefined for one that no server knows. */
  root: string | undefined
  place: 'active' | 'archive' | 'trash'
}

/**
 * Two servers of one user over the same files, each for its own folder, and two without that limit whose tokens have it. Every route of each is
 * visited by every role with every kind of session outside, which must be answered like an id that never existed. Nothing outside is listed,
 * found, reported, resumed or changed.
 */
export async function tryRoots(context: PartContext): Promise<{ visits: number; sessions: number }> {
  const { random, complain } = context
  const folder = await realpath(context.folder)
  const whole = openFileStore({ folder: join(folder, 'sessions') })
  const roots = ['left', 'right'].map((name) => join(folder, name))
  const made = await makeSessions(whole, folder, roots, random)
  const limits = ['server', 'tokens'] as const
  const places = await Promise.all(
    limits.flatMap((limited) => roots.map((root) => openPlace({ folder, root, limited }))),
  )
  let visits = 0
  try {
    for (const place of places) {
      const inside = made.filter(({ root }) => root === place.root)
      const outside = made.filter(({ root }) => root !== place.root)
      const before = await logsOf(folder, outside)
      if (place.limited === 'server') await recoverSessions(place.sessions)
      for (const { driver } of place.sessions.opened) while (driver.isBusy) await new Promise(setImmediate)
      await compareLists(place, inside)
      for (const each of outside) {
        // A role that is too small is rejected before the session matters, so one of the others suffices for each session.
        const others = roles.filter((each) => each !== 'drive')
        for (const role of place.limited === 'server'
          ? (['drive'] as const)
          : ['drive' as const, pick(others, random)]) {
          visits += await visitAll({ ...place, token: place.tokens.get(role) ?? '' }, each)
        }
      }
      if (place.limited === 'tokens') await tryElsewhere(place, folder)
      const after = await logsOf(folder, outside)
      for (const [id, log] of before) if (after.get(id) !== log) complain(`session ${id} was changed or moved`)
      for (const { id } of inside.filter(({ place: where }) => where === 'active')) {
        const { status } = await ask(`/api/sessions/${id}`, { url: place.server.url, token: place.token })
        if (status !== 200) complain(`a session inside of the root was answered with ${status}`)
      }
    }
    return { visits, sessions: made.length }
  } finally {
    for (const { server, store } of places) {
      await server.close()
      await store.close()
    }
    await whole.close()
  }

  /** Every route and the socket, with the id of a session outside and with one that was never given. */
  async function visitAll(place: Place, { id, place: where }: Made): Promise<number> {
    const unknown = `never-${id}`
    let count = 0
    for (const way of place.server.declared.filter(({ path }) => path.includes('{id}'))) {
      const [outside, never] = await Promise.all([visit(place, way, id), visit(place, way, unknown)])
      count++
      const told = `${way.method} ${way.path} of a session outside (${where})`
      if (outside.replaceAll(id, unknown) !== never) complain(`${told}: ${outside} instead of ${never}`)
      if (!/^(?:40[34]|415|4404|1006) /.test(never)) {
        complain(`the proof asked ${told} wrongly: ${never}`)
      }
    }
    return count
  }

  async function compareLists({ server, token }: Place, inside: readonly Made[]): Promise<void> {
    const get = async (path: string): Promise<unknown> => (await ask(path, { url: server.url, token })).body
    for (const place of ['active', 'archive', 'trash'] as const) {
      const { sessions } = (await get(`/api/sessions?limit=200&place=${place}`)) as { sessions: { id: string }[] }
      const wanted = inside.filter((each) => each.place === place).map(({ id }) => id)
      const listed = sessions.map(({ id }) => id)
      if (wanted.toSorted().join() !== listed.toSorted().join()) complain(`the list of ${place} has ${listed.join()}`)
    }
    const { hits } = (await get('/api/search?q=said&limit=200')) as { hits: { session_id: string }[] }
    const found = new Set(hits.map(({ session_id }) => session_id))
    for (const id of found) if (!inside.some((each) => each.id === id)) complain(`a search found session ${id}`)
    const metrics = await ask('/metrics', { url: server.url, token })
    for (const { id } of made) if (metrics.text.includes(id)) complain(`metrics name session ${id}`)
  }

  /** Folders and tokens outside of the folder of the token, and metrics, which count everything. */
  async function tryElsewhere({ server, root, tokens }: Place, around: string): Promise<void> {
    for (const [role, token] of tokens) {
      const status = async (path: string, json?: object): Promise<number> =>
        (await ask(path, { url: server.url, token, ...(json && { json }) })).status
      const elsewhere = [around, join(around, 'around'), ...roots.filter((each) => each !== root)]
      for (const cwd of [...elsewhere, join(root, '..')]) {
        const query = encodeURIComponent(cwd)
        const statuses = {
          'a session': await status('/api/sessions', { cwd }),
          'a list of folders': await status(`/api/folders?path=${query}`),
          settings: await status(`/api/settings?cwd=${query}`),
          'a token': await status('/api/tokens', { role: 'view', folder: cwd }),
          'a pairing code': await status('/api/pairing', { role: 'view', folder: cwd }),
          metrics: await status('/metrics'),
        }
        for (const [what, answered] of Object.entries(statuses)) {
          if (answered !== 403) complain(`${role} with the folder ${root} got ${what} of ${cwd}: ${answered}`)
        }
      }
    }
  }
}

/** Sessions in and around both roots: behind links, in folders that are gone, put away, with a run to resume. */
async function makeSessions(
  store: SessionStore,
  folder: string,
  roots: readonly string[],
  random: () => number,
): Promise<Made[]> {
  const [left = '', right = ''] = roots
  for (const name of ['left/deep', 'right/deep', 'left-too', 'around'])
    await mkdir(join(folder, name), { recursive: true })
  await symlink(right, join(left, 'to-right'))
  await symlink(left, join(right, 'to-left'))
  await symlink(join(folder, 'nowhere'), join(left, 'dangling'))
  const folders: [cwd: string | undefined, root: string | undefined][] = [
    [left, left],
    [join(left, 'deep'), left],
    [join(left, 'gone', 'deep'), left],
    [join(left, 'to-right'), right],
    [join(left, 'to-right', 'gone'), right],
    [join(left, 'dangling'), undefined],
    [right, right],
    [join(right, 'deep'), right],
    [join(right, 'to-left', 'deep'), left],
    [join(folder, 'left-too'), undefined],
    [join(folder, 'around'), undefined],
    [folder, undefined],
    [undefined, undefined],
  ]
  const made: Made[] = []
  for (const [index, [cwd, root]] of folders.entries()) {
    const id = `s-${index}-${Math.floor(random() * 1e9).toString(36)}`
    const session = await store.create({ id, ...(cwd !== undefined && { cwd }) })
    const leafId = await session.appendMessage('user', [text('Somebody said this.')], { with: { runId: 'r' } })
    await session.append({ type: 'run_start', runStart: { runId: 'r', leafId, owner: 'server' } })
    await session.close()
    const place = pick(['active', 'active', 'archive', 'trash'] as const, random)
    if (place === 'archive') await store.archive(id)
    if (place === 'trash') await store.delete(id)
    made.push({ id, root, place })
  }
  return made
}

async function openPlace({
  folder,
  root,
  limited,
}: Pick<Place, 'root' | 'limited'> & { folder: string }): Promise<Place> {
  const roots = limited === 'server' ? [root] : [folder]
  const store = storeInside(openFileStore({ folder: join(folder, 'sessions') }), roots)
  const model = scriptedModel([], { otherwise: () => [{ type: 'text_delta', text: 'Nobody asked.' }] })
  const options = { models: onlyModel(model), tools: () => [], gate: () => allowAll, hasSubagents: false, cwd: root }
  const sessions = new LiveSessions({
    store,
    openDriver: async (sessionId) =>
      new AgentDriver({ agent: await AgentSession.open({ ...options, owner: 'server', store, sessionId }) }),
    create: async ({ model: _model, agent: _agent, ...header }) => {
      await using session = await store.create(header)
      return session.id
    },
  })
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const byRole = new Map<Role, string>()
  for (const role of roles) {
    const scope = limited === 'tokens' ? { folder: root } : {}
    byRole.set(role, (await tokens.create({ tenant: 'default', role, ...scope })).token)
  }
  const tenants = new Map([['default', sessions]])
  const server = await startServer({ tenants, tokens, metrics: new Metrics(tenants), api: { roots: () => roots } })
  return { root, limited, server, sessions, store, token: byRole.get('drive') ?? '', tokens: byRole }
}

/** Status and problem of one request, or the close code of a socket. */
async function visit({ server, token }: Place, way: RunningServer['declared'][number], id: string): Promise<string> {
  const path = way.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'id' ? id : (parameters[name] ?? '')))
  if (way.config === undefined) return attach(`${server.url}${path}`, token)
  const body = bodies[way.path.replace('/api/sessions/{id}', '')] ?? {}
  const hasBody = way.config.request?.body !== undefined
  const response = await fetch(`${server.url}${path}${queries[way.path] ?? ''}`, {
    method: way.method.toUpperCase(),
    headers: { authorization: `Bearer ${token}`, ...(hasBody && { 'content-type': 'application/json' }) },
    ...(hasBody && { body: JSON.stringify(body) }),
  })
  // Each response has an id of its own.
  const idPattern = /,"request_id":"[^"]*"/
  if (!response.ok) return `${response.status} ${(await response.text()).replace(idPattern, '')}`
  // A stream of events would not end.
  await response.body?.cancel()
  return `${response.status} and let in`
}

const parameters: Record<string, string> = {
  msg_id: 'q-1',
  entry_id: 'e-1',
  request_id: 'r-1',
  sha256: '0'.repeat(64),
}

const queries: Record<string, string> = {
  '/api/sessions/{id}/compare': '?left=a&right=b',
  '/api/sessions/{id}/files/content': '?path=a.txt',
  '/api/sessions/{id}/files/raw': '?path=a.txt',
  '/api/sessions/{id}/git/diff': '?path=a.txt',
}

const bodies: Record<string, object> = {
  '': { name: 'changed' },
  '/prompt': { text: 'do it' },
  '/workspace': { host: 'laptop', workspace: 'app' },
  '/queue': { message: 'do it' },
  '/queue/{msg_id}': { message: 'changed' },
  '/permissions/{request_id}': { option_id: 'allow' },
}

async function attach(url: string, token: string): Promise<string> {
  const socket = new WebSocket(url.replace('http', 'ws'), ['tapetree.v1', `bearer.${token}`])
  const frames: string[] = []
  socket.addEventListener('open', () =>
    socket.send(JSON.stringify({ type: 'attach', data: { client: { id: 'visitor' } } })),
  )
  socket.addEventListener('message', ({ data }) => {
    frames.push(String(data))
    if (String(data).startsWith('{"type":"attached"')) socket.close()
  })
  const [closed] = (await once(socket, 'close')) as [CloseEvent]
  return `${closed.code} ${frames.join()}`
}

/** The bytes of each log at the place where it was left. */
async function logsOf(folder: string, made: readonly Made[]): Promise<Map<string, string>> {
  const places = { active: '', archive: '.archive', trash: '.trash' }
  const logs = new Map<string, string>()
  for (const { id, place } of made) {
    const path = join(folder, 'sessions', places[place], id, 'events.jsonl')
    logs.set(id, await readFile(path, 'utf8').catch(() => 'gone'))
  }
  return logs
}
