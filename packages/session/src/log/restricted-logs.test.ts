import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { SessionError } from '../errors.ts'
import type { SessionStore } from '../store/session-store.ts'
import { openFileStore } from '../stores/file/file-store.ts'
import { nodeFilePort } from '../stores/file/node-file-port.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { user } from '../testing/builders.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function inFolder(open: (folder: string) => SessionStore): Promise<SessionStore> {
  const folder = await mkdtemp(join(tmpdir(), 'restricted-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  return open(folder)
}

const stores: [string, () => Promise<SessionStore>][] = [
  ['in memory', async () => memoryStore()],
  ['in files with an index', () => inFolder((folder) => openFileStore({ folder }))],
  ['in files without an index', () => inFolder((folder) => openFileStore({ folder, port: nodeFilePort() }))],
]

describe.each(stores)('a store %s restricted to a folder', (_name, open) => {
  const isVisible = (cwd: string | undefined): boolean => cwd?.startsWith('/in') ?? false

  async function start(): Promise<{ whole: SessionStore; store: SessionStore }> {
    const whole = await open()
    cleanUps.push(() => whole.close())
    return { whole, store: whole.restrictedTo(isVisible) }
  }

  async function make(store: SessionStore, id: string, cwd?: string): Promise<void> {
    const session = await store.create({ id, name: id, ...(cwd !== undefined && { cwd }) })
    await user(session, `words of ${id}`)
    await session.close()
  }

  const code = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'done',
      (error: unknown) => (error instanceof SessionError ? `${error.code}: ${error.message}` : error),
    )

  test('lists and finds only sessions inside, for any page size', async () => {
    const { whole, store } = await start()
    for (let index = 0; index < 12; index++) await make(whole, `s-${index}`, index % 3 === 0 ? '/in/a' : '/out')
    await make(whole, 'none')
    const inside = ['s-0', 's-3', 's-6', 's-9']
    for (const limit of [1, 2, 3, 100]) {
      const found: string[] = []
      let cursor: string | undefined
      do {
        const page = await store.list({ limit, ...(cursor !== undefined && { cursor }) })
        expect(page.sessions.length).toBeLessThanOrEqual(limit)
        found.push(...page.sessions.map(({ id }) => id))
        cursor = page.cursor
      } while (cursor !== undefined)
      expect(found.sort()).toEqual(inside)
    }
    expect((await store.list({ cwd: '/out' })).sessions).toEqual([])
    const hits = await store.search({ text: 'words', limit: 3 })
    expect(hits).toHaveLength(3)
    expect(hits.filter(({ sessionId }) => !inside.includes(sessionId))).toEqual([])
    expect(await store.search({ text: 'words of s-1' })).toEqual([])
    for (const { id } of (await whole.list({ limit: 100 })).sessions) await whole.archive(id)
    const archived = await store.search({ text: 'words', place: 'archive', limit: 100 })
    expect([...new Set(archived.map(({ sessionId }) => sessionId))].sort()).toEqual(inside)
    expect(await code(store.open('s-1', { place: 'archive' }))).toMatch('session-not-found')
    await (await store.open('s-0', { place: 'archive' })).close()
  })

  test('can be restricted further: only sessions inside of both are listed, found and opened', async () => {
    const { whole, store } = await start()
    const inner = store.restrictedTo((cwd) => cwd?.endsWith('/a') ?? false)
    for (const [id, cwd] of [
      ['both', '/in/a'],
      ['outer', '/in/b'],
      ['inner', '/out/a'],
    ] as const)
      await make(whole, id, cwd)
    expect((await inner.list()).sessions.map(({ id }) => id)).toEqual(['both'])
    expect((await inner.search({ text: 'words' })).map(({ sessionId }) => sessionId)).toEqual(['both'])
    for (const id of ['outer', 'inner']) {
      expect(await code(inner.open(id, { readOnly: true }))).toMatch('session-not-found')
      await whole.delete(id)
      expect(await code(inner.restore(id))).toMatch('session-not-found')
    }
  })

  test('treats a session outside as missing, in every place', async () => {
    const { whole, store } = await start()
    await make(whole, 'outside', '/out')
    await make(whole, 'archived', '/out')
    await make(whole, 'no-folder')
    await whole.archive('archived')
    const unknown = await answers('unknown')
    for (const id of ['outside', 'archived', 'no-folder']) {
      expect((await answers(id)).map((each) => String(each).replaceAll(id, 'unknown'))).toEqual(unknown)
    }
    expect((await whole.list()).sessions.map(({ id }) => id).sort()).toEqual(['no-folder', 'outside'])
    expect((await whole.list({ place: 'archive' })).sessions.map(({ id }) => id)).toEqual(['archived'])

    async function answers(id: string): Promise<unknown[]> {
      const work = [
        store.open(id),
        store.open(id, { readOnly: true }),
        store.archive(id),
        store.delete(id),
        store.restore(id),
        drain(store.pack(id)),
        store.verify(id),
        store.forkFrom(id),
        store.queue(id).list(),
      ]
      return Promise.all(work.map((each) => code(Promise.resolve(each))))
    }
  })

  test('supports every operation on a session inside', async () => {
    const { whole, store } = await start()
    await make(whole, 'inside', '/in/b')
    const session = await store.open('inside')
    await user(session, 'more')
    const fork = await session.copyAll()
    await session.close()
    expect((await store.verify('inside')).isIntact).toBe(true)
    await store.archive('inside')
    expect((await store.list({ place: 'archive' })).sessions).toMatchObject([{ id: 'inside' }])
    await store.restore('inside')
    await store.delete(fork)
    expect((await store.list()).sessions).toMatchObject([{ id: 'inside' }])
  })

  test('creates no session outside, and loads none by path', async () => {
    const { whole, store } = await start()
    await make(whole, 'outside', '/out')
    expect(await code(store.create({ cwd: '/out' }))).toContain('invalid-entry')
    expect(await code(store.create())).toContain('invalid-entry')
    const { path = 'none' } = (await whole.list()).sessions[0] ?? {}
    expect(await code(store.load(path))).not.toBe('done')
    expect((await whole.list()).sessions).toHaveLength(1)
  })
})

async function drain(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let count = 0
  for await (const chunk of bytes) count += chunk.length
  return count
}

test('a log that begins with a byte order mark or blank lines is visible by its folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'restricted-'))
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  const header = '{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/in/here"}\n'
  const logs = { mark: `\uFEFF${header}`, blank: `\n \n${header}`, both: `\uFEFF\n${header}` }
  for (const [id, text] of Object.entries(logs)) {
    await mkdir(join(folder, id))
    await writeFile(join(folder, id, 'events.jsonl'), text)
  }
  await using whole = openFileStore({ folder })
  const inside = whole.restrictedTo((cwd) => cwd === '/in/here')
  const outside = whole.restrictedTo((cwd) => cwd !== undefined && cwd !== '/in/here')
  for (const id of Object.keys(logs)) {
    await using session = await inside.open(id, { readOnly: true })
    expect(session.header?.cwd).toBe('/in/here')
    await expect(outside.open(id, { readOnly: true })).rejects.toMatchObject({ code: 'session-not-found' })
  }
})
