import { describe, test } from 'vitest'
import { sealLine } from '../../seal-line.ts'
import { localScope } from '../../log-store.ts'
import { SessionStore } from '../../store.ts'
import { testSessionStore } from '../../testing/store-contract.ts'
import { MemoryLogStore } from './memory-store.ts'

describe('memory store', () => {
  testSessionStore({
    test,
    open: async () => {
      const port = new MemoryLogStore()
      return {
        store: new SessionStore(port),
        reopen: async () => new SessionStore(port),
        writeBehindBack: async (sessionId) => {
          const line = { type: 'custom', id: 'foreign', parent_id: null }
          const claim = await port.claim(localScope, sessionId, { insist: true })
          if (claim.type !== 'claimed') throw new Error('A claim that insists was refused')
          await claim.log.append([sealLine(line, 4)], { term: claim.log.term ?? 0, head: 3, durability: 'durable' })
        },
        close: async () => undefined,
      }
    },
  })
})
