// One server of a service in a process of its own, made to be killed. It has the store, the bus and the recovery of
// `tapetree serve`; only the model follows a script.
import { join } from 'node:path'
import { agentSessions, createLog, defaultTenant, NatsBus, startServer, type LiveSessions } from '@tapetree/server'
import { openNodeStore } from '../../../packages/cli/src/host/node-store.ts'
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
  const { node, databaseUrl, busUrl, folder, host = '127.0.0.1' } = options
  const log = createLog({ level: 'warn' })
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
    host,
    allowInsecure: true,
    allowedHosts: [host],
  })
  say({ type: 'serving', url: server.url })
}

function say(word: Word): void {
  process.send?.(word)
}
