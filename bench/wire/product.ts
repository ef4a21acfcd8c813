import { AgentSession, onlyModel, allowAll, type Model } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { openPostgresStore } from '@tapetree/session/stores/postgres'
import { join } from 'node:path'
import { TokenStore } from '../../packages/server/src/auth/token-store.ts'
import { NatsBus } from '../../packages/server/src/bus/nats-bus.ts'
import { AgentDriver } from '../../packages/server/src/drivers/agent-driver.ts'
import type { LiveSession } from '../../packages/server/src/live/live-session.ts'
import { LiveSessions } from '../../packages/server/src/live/live-sessions.ts'
import { startServer } from '../../packages/server/src/server.ts'

export interface ProductOptions {
  /** For logs and tokens. */
  folder: string
  sessions: number
  /** How often text is sent; the server's own pace if absent. */
  tickMs?: number
  /** One of several servers on a database. Else the sessions are files. */
  cluster?: { store: string; bus: string; node: string }
  modelOf?: (sessionId: string) => Model
}

/** What a client needs to know. */
export interface ProductAddress {
  port: number
  token: string
  sessionIds: string[]
}

/** The real server: tokens, doors, agents, logs and drafts on the disk. */
export async function startProduct(options: ProductOptions): Promise<{ address: ProductAddress; live: LiveSession[] }> {
  const { folder, sessions: count, tickMs, cluster, modelOf = () => scriptedModel(script().text('Hello.')) } = options
  const store = cluster
    ? openPostgresStore({ url: cluster.store, node: cluster.node, leaseMs: 10_000 })
    : openFileStore({ folder: join(folder, 'sessions') })
  const bus = cluster && (await NatsBus.open({ url: cluster.bus, node: cluster.node }))
  const sessions = new LiveSessions({
    store,
    ...(tickMs !== undefined && { tickMs }),
    openDriver: async (sessionId) => {
      const models = onlyModel(modelOf(sessionId))
      const agent = { store, sessionId, models, tools: () => [], gate: () => allowAll, hasSubagents: false, cwd: '/' }
      return new AgentDriver({ agent: await AgentSession.open(agent) })
    },
    create: async ({ model: _model, agent: _agent, ...header }) => {
      const session = await store.create(header)
      await session.close()
      return session.id
    },
  })
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const server = await startServer({ tenants: new Map([['default', sessions]]), tokens, ...(bus && { bus }) })
  const live: LiveSession[] = []
  for (let index = 0; index < count; index++) live.push(await sessions.get(await sessions.create({ cwd: '/' })))
  const token = tokens.takeFirstToken() as string
  return { address: { port: server.address.port, token, sessionIds: live.map(({ session }) => session.id) }, live }
}
