// One server of a service in a process of its own, made to be killed. It has the store, the bus and the recovery of
// `tapetree serve`; only the model follows a script.
import { join } from 'node:path'
import { agentSessions, createLog, defaultTenant, NatsBus, startServer, type LiveSessions } from '@tapetree/server'
import { openNodeStore } from '../../../packages/cli/src/host/node-store.ts'
import { Router } from '../pg-faults/router.ts'
import { workingAgent } from './working-agent.ts'
import type { NodeOptions, Order, Word } from './words.ts'

let sessions: LiveSessions | undefined

process.on('message', (order: Order) => {
  switch (order.type) {
    case 'serve':
      void serve(order).catch((error: unknown) => {
        console.error(error)
        process.exit(1)
      })
      return
    case 'look':
      say({
        type: 'status',
        working: sessions?.opened.filter(({ isWorking, isWatched }) => isWorking && !isWatched).length ?? 0,
      })
      return
    default:
      order satisfies never
  }
})
// Nobody is left to serve.
process.once('disconnect', () => process.exit(0))
say({ type: 'loaded' })

async function serve(options: NodeOptions): Promise<void> {
  const { node, database, busUrl, folder, at = { host: '127.0.0.1', port: 0 } } = options
  const databaseUrl = typeof database === 'string' ? database : await routeTo(database)
  const log = createLog({ level: 'info' })
  // The database names this node as the writer of its lines.
  const url = `${databaseUrl}?application_name=${node}`
  const places = { sessions: join(folder, 'sessions') }
  const { store } = await openNodeStore({ type: 'postgres', url, shown: databaseUrl }, places, { node })
  sessions = agentSessions({ store, ...workingAgent(options) })
  const server = await startServer({
    tenants: new Map([[defaultTenant, sessions]]),
    authenticate: () => ({ id: 'proof', tenant: defaultTenant, role: 'drive' }),
    bus: await NatsBus.open({ node, url: busUrl, report: (problem) => log.warn({ source: 'bus' }, problem) }),
    api: { roots: () => [folder] },
    recovery: 'resume',
    log,
    ...at,
    allowInsecure: true,
    allowedHosts: [at.host],
  })
  say({ type: 'serving', url: server.url })
}

/** As a proxy on the same machine does. */
async function routeTo(nodes: Exclude<NodeOptions['database'], string>): Promise<string> {
  const router = await Router.start({ nodes })
  return `postgres://app@127.0.0.1:${router.port}/sessions`
}

function say(word: Word): void {
  process.send?.(word)
}
