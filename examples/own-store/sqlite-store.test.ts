import { createAgent } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { localScope, SessionStore } from '@tapetree/session'
import { sealLine } from '@tapetree/session/format'
import { testSessionStore } from '@tapetree/session/testing'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SqliteStore } from './sqlite-store.ts'

describe('the store in SQLite', () => {
  testSessionStore({
    test,
    open: async () => {
      const folder = await mkdtemp(join(tmpdir(), 'tapetree-own-store-'))
      const file = join(folder, 'sessions.db')
      const port = new SqliteStore(file)
      const opened = [new SessionStore(port)]
      return {
        store: opened[0] as SessionStore,
        port,
        reopen: async () => {
          const store = new SessionStore(new SqliteStore(file))
          opened.push(store)
          return store
        },
        writeBehindBack: async (sessionId) => {
          const claim = await port.claim(localScope, sessionId, { insist: true })
          if (claim.type !== 'claimed') throw new Error('A claim that insists was refused')
          const line = sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4)
          await claim.log.append([line], { term: claim.log.term ?? 0, head: 3, durability: 'durable' })
        },
        close: async () => {
          for (const store of opened) await store.close()
          await rm(folder, { recursive: true })
        },
      }
    },
  })
})

test('an agent continues in the next process with its sessions in SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-own-store-'))
  const file = join(folder, 'sessions.db')
  for (const [question, answer] of [
    ['My name is Ada.', 'Hello, Ada.'],
    ['What is my name?', 'Ada.'],
  ] as const) {
    const model = scriptedModel(script().text(answer))
    const store = new SessionStore(new SqliteStore(file))
    await using agent = createAgent({ model, store })
    expect((await agent.ask(question, { sessionId: 'ada' })).text).toBe(answer)
    const sent = JSON.stringify(model.requests[0]?.messages)
    expect(sent).toContain('My name is Ada.')
    await agent.close()
    await store.close()
  }
  await rm(folder, { recursive: true })
})
