import { SessionStore } from '@tapetree/session'
import { testSessionStore } from '@tapetree/session/testing'
import { describe, expect, test } from 'vitest'
import { sealLine } from '../../../packages/session/src/line/seal-line.ts'
import { localScope, type WritableLog } from '../../../packages/session/src/log/log-store.ts'
import { Database, type ConnectionPool } from '../../../packages/session/src/stores/postgres/database.ts'
import { PostgresLogStore } from '../../../packages/session/src/stores/postgres/postgres-store.ts'
import { ModelledDatabase } from './modelled-database.ts'

describe('the PostgreSQL store on the modelled database', () => {
  testSessionStore({
    test,
    open: async () => {
      const database = new ModelledDatabase({ now: () => Date.now() })
      const ports: PostgresLogStore[] = []
      const openPort = (): PostgresLogStore => {
        const port = portOn(database, 60_000)
        ports.push(port)
        return port
      }
      const port = openPort()
      return {
        store: new SessionStore(port),
        port,
        reopen: async () => new SessionStore(openPort()),
        writeBehindBack: async (sessionId) => {
          const log = await insist(openPort(), sessionId)
          const line = sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4)
          await log.append([line], { term: log.term ?? 0, head: 3, durability: 'durable' })
        },
        close: async () => {
          for (const each of ports) await each.close()
        },
      }
    },
  })
})

test('the sessions of a node whose lease has ended can be claimed, and those of a living node cannot', async () => {
  let now = 0
  const database = new ModelledDatabase({ now: () => now })
  const [dying, other] = [portOn(database, 3000), portOn(database, 3000)]
  await dying.create(localScope, 's', sealLine({ type: 'session', id: 's' }, 1))
  const first = await insist(dying, 's')
  now = 2999
  expect(await other.claimAbandoned(localScope, { limit: 10 })).toEqual([])
  expect(await other.claim(localScope, 's')).toMatchObject({ type: 'owned' })
  now = 3000
  const [taken] = await other.claimAbandoned(localScope, { limit: 10 })
  expect(taken?.log.term).toBe((first.term ?? 0) + 1)
  const line = sealLine({ type: 'custom', id: 'late', parent_id: null }, 2)
  const stale = await first.append([line], { term: first.term ?? 0, head: 1, durability: 'durable' })
  expect(stale.type).toBe('fenced')
  await dying.close()
  await other.close()
})

async function insist(port: PostgresLogStore, sessionId: string): Promise<WritableLog> {
  const claim = await port.claim(localScope, sessionId, { insist: true })
  if (claim.type !== 'claimed') throw new Error('A claim that insists was refused')
  return claim.log
}

/** A network that loses nothing and takes no time. */
function portOn(database: ModelledDatabase, leaseMs: number): PostgresLogStore {
  const options = { url: 'modelled', leaseMs }
  const openPool = (): ConnectionPool => ({
    connect: async () => ({
      query: async (text: string, values: unknown[] = []) => ({ rows: database.run(text, values) }),
      release: () => undefined,
      end: async () => undefined,
    }),
    end: async () => undefined,
  })
  return new PostgresLogStore(options, new Database(options, openPool))
}
