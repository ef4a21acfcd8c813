import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'vitest'
import { sealLine } from '../../seal-line.ts'
import type { SessionStore } from '../../store.ts'
import { testSessionStore } from '../../testing/store-contract.ts'
import { openFileStore } from './file-store.ts'

describe('file store', () => {
  testSessionStore({
    test,
    open: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'tapetree-'))
      const stores: SessionStore[] = []
      const openStore = (): SessionStore => {
        const store = openFileStore({ folder })
        stores.push(store)
        return store
      }
      return {
        store: openStore(),
        reopen: async () => openStore(),
        writeBehindBack: async (sessionId) => {
          const { text } = sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4)
          appendFileSync(join(folder, sessionId, 'events.jsonl'), `${text}\n`)
        },
        close: async () => {
          for (const store of stores) await store.close()
          rmSync(folder, { recursive: true })
        },
      }
    },
  })
})
