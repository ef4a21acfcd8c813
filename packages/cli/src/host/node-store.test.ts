import { SessionStore } from '@tapetree/session'
import { MemoryLogStore } from '@tapetree/session/log-store'
import { changedPort } from '@tapetree/session/testing'
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LogsOfNode } from './node-store.ts'

interface Node {
  logs: LogsOfNode
  store: SessionStore
  folder: string
  /** Abandoned sessions, among them those that were handed over. */
  abandoned: string[]
}

async function nodeWith(ids: readonly string[]): Promise<Node> {
  const folder = await mkdtemp(join(tmpdir(), 'node-store-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const abandoned: string[] = []
  const port = changedPort(new MemoryLogStore(), {
    store: (inner) => ({
      claimAbandoned: async (scope, { limit }) => {
        const claims = abandoned.splice(0, limit).map(async (sessionId) => {
          const claim = await inner.claim(scope, sessionId)
          return claim.type === 'claimed' ? [{ sessionId, log: claim.log }] : []
        })
        return (await Promise.all(claims)).flat()
      },
    }),
    log: (log, { sessionId }) => ({
      handOver: async () => {
        abandoned.push(sessionId)
        await log.close()
      },
    }),
  })
  const store = new SessionStore(port)
  for (const id of ids) await (await store.create({ id })).close()
  return { logs: new LogsOfNode(port, folder), store, folder, abandoned }
}

/** Makes it impossible to create the folder of a session. */
const block = ({ folder }: Node, sessionId: string): Promise<void> => writeFile(join(folder, sessionId), '')

test('a session whose folder cannot be made is left to other servers', async () => {
  const node = await nodeWith(['one'])
  await block(node, 'one')
  await expect(node.logs.claim(node.store.scope, 'one')).rejects.toMatchObject({ code: 'EEXIST' })
  expect(node.abandoned).toEqual(['one'])
  await using elsewhere = await node.store.open('one')
  expect(elsewhere.owner).toBeUndefined()
})

test('of abandoned sessions, those whose folder cannot be made are left to other servers', async () => {
  const node = await nodeWith(['one', 'two', 'three'])
  node.abandoned.push('one', 'two', 'three')
  await block(node, 'two')
  const claimed = await node.logs.claimAbandoned(node.store.scope, { limit: 20 })
  expect(claimed.map(({ sessionId }) => sessionId)).toEqual(['one', 'three'])
  for (const { log, sessionId } of claimed) {
    expect(log.localFolder).toBe(join(node.folder, sessionId))
    expect((await stat(join(node.folder, sessionId))).isDirectory()).toBe(true)
  }
  expect(node.abandoned).toEqual(['two'])
  await expect(node.logs.claimAbandoned(node.store.scope, { limit: 20 })).rejects.toMatchObject({ code: 'EEXIST' })
  expect(node.abandoned).toEqual(['two'])
})
