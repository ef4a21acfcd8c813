import { roles } from '@tapetree/client/protocol'
import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { scriptedModel } from '@tapetree/agent/testing'
import {
  AgentDriver,
  LiveSessions,
  Metrics,
  startServer,
  TokenStore,
  type Role,
  type RunningServer,
} from '@tapetree/server'
import { ToolHosts } from '@tapetree/server/tool-hosts'
import { memoryStore } from '@tapetree/session'
import { mkdir, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { allGood, lesserRole, type TokenKind, type Visit, type Way } from './visit.ts'

const watched = 'watched'
const other = 'other'
const elsewhere = 'elsewhere'

/** A server with a tenant whose things must stay as they are, and everything that people try to get at them with. */
export class Scene {
  readonly server: RunningServer
  readonly ways: readonly Way[]
  readonly #tokens: TokenStore
  readonly #sessions: LiveSessions
  readonly #folder: string
  /** By the access that a way needs, since `lesser role` depends on it. */
  readonly #bearers: Map<string, string>
  readonly #elsewhereId: string
  readonly #ids: { session: string; message: string; token: string; entry: string }

  private constructor(parts: {
    server: RunningServer
    tokens: TokenStore
    sessions: LiveSessions
    folder: string
    bearers: Map<string, string>
    ids: Scene['ids']
  }) {
    this.server = parts.server
    this.#tokens = parts.tokens
    this.#sessions = parts.sessions
    this.#folder = parts.folder
    this.#bearers = parts.bearers
    this.#elsewhereId = idIn(parts.bearers.get('other folder') ?? '')
    this.#ids = parts.ids
    this.ways = parts.server.declared.map(({ method, path, access, config }) => ({
      method,
      path,
      access,
      isWebSocket: config === undefined,
      mediaTypes: Object.keys(config?.request?.body?.content ?? {}),
    }))
  }

  static async open(temporaryFolder: string): Promise<Scene> {
    const folder = await realpath(temporaryFolder)
    await mkdir(join(folder, elsewhere))
    const sessions = scripted()
    const tenants = new Map([
      [watched, sessions],
      [other, scripted()],
    ])
    const tokens = await TokenStore.open({
      file: join(folder, 'tokens.json'),
      first: { tenant: watched, role: 'drive' },
    })
    const server = await startServer({
      tenants,
      tokens,
      ownerTenant: watched,
      metrics: new Metrics(tenants),
      toolHosts: new ToolHosts(),
      editors: async ({ stream }) => {
        for await (const _ of stream.readable);
      },
      api: { roots: () => [folder] },
    })
    const session = await sessions.create({ cwd: folder, name: 'watched' })
    const live = await sessions.get(session)
    await live.perform('prompt', 'owner', { op: 'prompt', args: { text: 'hello' } })
    while (live.driver.isBusy) await new Promise(setImmediate)
    await live.perform('hold', 'owner', { op: 'queue.hold' })
    const queued = await live.perform('queue', 'owner', { op: 'queue.add', args: { message: 'later' } })
    const { id: message } = queued.result as { id: string }
    const spare = await tokens.create({ tenant: watched, role: 'view', name: 'spare' })
    const ids = { session, message, token: spare.record.id, entry: live.session.leafId ?? 'none' }
    return new Scene({ server, tokens, sessions, folder, bearers: await makeBearers(tokens, folder), ids })
  }

  get ids(): { session: string; message: string; token: string; entry: string } {
    return this.#ids
  }

  /** Undefined where the visit brings none. */
  bearer({ access }: Way, { token }: Visit): string | undefined {
    if (token === 'none') return undefined
    const kind = token.replace(' cookie', '')
    const role = kind === 'lesser role' ? (lesserRole(access) ?? 'view') : ''
    const bearer = this.#bearers.get(`${kind}${role && ` ${role}`}`)
    if (bearer === undefined) throw new Error(`There is no token of kind ${kind} ${role}`)
    return bearer
  }

  /** All that must not change, as one text. */
  async state(): Promise<string> {
    const { sessions: listed } = await this.#sessions.store.list({ limit: 100 })
    const live = await this.#sessions.get(this.#ids.session)
    return JSON.stringify({
      listed,
      head: live.session.head,
      queue: live.session.inbox.messages,
      screens: live.connections.size,
      isBusy: live.driver.isBusy,
      config: live.board.get('config'),
      live: [...this.#sessions.live.keys()],
      // A token with another folder may create tokens for that folder.
      tokens: this.#tokens.list(watched).filter(({ parentId }) => parentId !== this.#elsewhereId),
      files: (await readdir(this.#folder)).sort(),
    })
  }

  /** A way with the ids of what is being watched in the place of its parameters. */
  pathOf({ path }: Way): string {
    const { session, message, token, entry } = this.#ids
    const values: Record<string, string> = {
      id: session,
      msg_id: message,
      token_id: token,
      entry_id: entry,
      request_id: 'r-1',
      subscription_id: '0'.repeat(32),
      name: 'none.js',
      sha256: '0'.repeat(64),
      job_id: 'job',
    }
    return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name]
      if (value === undefined) throw new Error(`The proof has no value for the parameter ${name} of ${path}`)
      return value
    })
  }

  /** A body that the route would take. */
  bodyOf({ path, mediaTypes }: Way): string | undefined {
    if (mediaTypes.length === 0) return undefined
    if (path.endsWith('/images')) return 'GIF89a'
    const bodies: Record<string, object> = {
      '/api/tokens': { role: 'view' },
      '/api/pairing': { role: 'view' },
      '/api/pair': { code: 'none' },
      '/api/sign-in': { token: 'none' },
      '/api/sessions': { cwd: this.#folder },
      '/api/sessions/{id}': { name: 'changed' },
      '/api/sessions/{id}/prompt': { text: 'do it' },
      '/api/sessions/{id}/queue': { message: 'do it' },
      '/api/sessions/{id}/queue/{msg_id}': { message: 'changed' },
      '/api/sessions/{id}/permissions/{request_id}': { option_id: 'allow' },
    }
    return JSON.stringify(bodies[path] ?? {})
  }

  async close(): Promise<void> {
    await this.server.close()
  }
}

function idIn(token: string): string {
  return token.split('_')[1] ?? ''
}

async function makeBearers(tokens: TokenStore, folder: string): Promise<Map<string, string>> {
  const bearers = new Map<string, string>()
  const add = async (kind: TokenKind | `lesser role ${string}`, tenant: string, role: Role): Promise<string> => {
    const made = await tokens.create({
      tenant,
      role,
      ...(kind === 'expired' && { expiresAt: Date.now() - 1 }),
      ...(kind === 'other folder' && { folder: join(folder, elsewhere) }),
    })
    bearers.set(kind, made.token)
    return made.record.id
  }
  for (const role of roles.filter((each) => each !== 'drive')) await add(`lesser role ${role}`, watched, role)
  await add('metrics role', watched, 'metrics')
  await add('other folder', watched, 'drive')
  await add(allGood.token, watched, 'drive')
  await add('expired', watched, 'drive')
  await add('other tenant', other, 'drive')
  await add('tenant not hosted', 'nowhere', 'drive')
  await tokens.revoke(await add('revoked', watched, 'drive'), watched)
  bearers.set('nonsense', 'nonsense')
  const good = bearers.get(allGood.token) ?? ''
  bearers.set('wrong secret', `${good.slice(0, -43)}${'A'.repeat(43)}`)
  return bearers
}

function scripted(): LiveSessions {
  const store = memoryStore()
  const model = scriptedModel([], { otherwise: () => [{ type: 'text_delta', text: 'Hello.' }] })
  const options = { models: onlyModel(model), tools: () => [], gate: () => allowAll, hasSubagents: false, cwd: '/' }
  return new LiveSessions({
    store,
    openDriver: async (sessionId) =>
      new AgentDriver({ agent: await AgentSession.open({ ...options, store, sessionId }) }),
    create: async ({ model: _model, agent: _agent, ...header }) => {
      await using session = await store.create(header)
      return session.id
    },
  })
}
