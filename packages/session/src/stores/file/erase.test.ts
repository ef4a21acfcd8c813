import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { localScope } from '../../log/log-store.ts'
import { assistant, user } from '../../testing/builders.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import type { SessionStore } from '../../store/session-store.ts'
import { FileLogStore, openFileStore } from './file-store.ts'
import { IndexDb, indexFileIn } from './session-index/index-db.ts'

const secret = 'xylophone9317'

describe('erasing on a real disk', () => {
  let folder: string
  let store: SessionStore

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tapetree-erase-'))
    store = openFileStore({ folder })
  })

  afterEach(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })

  async function sessionWithSecret(id: string): Promise<void> {
    await using session = await store.create({ id, name: `About ${secret}` })
    await user(session, `Remember ${secret}`)
    await session.putBlob(Buffer.from(`blob of ${secret}`))
    await assistant(session, 'x'.repeat(300_000) + secret)
    await session.submit(`Later: ${secret}`)
    await session.saveDerived()
  }

  async function useIndex(): Promise<void> {
    for (const place of ['active', 'archive', 'trash'] as const) await store.list({ place })
    await store.search({ text: secret })
  }

  test('leaves no byte of the session in any file, also not in the index after moves', async () => {
    await (await store.create({ id: 'other', name: 'Other' })).close()
    await sessionWithSecret('doomed')
    await useIndex()
    await store.archive('doomed')
    await useIndex()
    await store.delete('doomed')
    await useIndex()
    expect(filesWith(folder, secret)).not.toEqual([])
    await store.erase('doomed')
    expect(filesWith(folder, secret)).toEqual([])
    expect(await namesOf(store)).toEqual(['Other'])
  })

  test('keeps the list rows of other sessions, so that a list does not read their logs again', async () => {
    await (await store.create({ id: 'other', name: 'Other' })).close()
    await sessionWithSecret('doomed')
    await useIndex()
    await store.erase('doomed')
    const db = IndexDb.open(indexFileIn(folder))
    expect(db.row(db.sourceNumber('', 'list'), 'other')?.value).toContain('Other')
    expect(db.row(db.sourceNumber('', 'list'), 'doomed')).toBeUndefined()
    db.close()
  })

  test('removes the index files of other builds', async () => {
    await sessionWithSecret('doomed')
    for (const name of ['index-0.sqlite', 'index-0.sqlite-wal', 'index-77.sqlite']) {
      writeFileSync(join(folder, name), secret)
    }
    await store.erase('doomed')
    expect(filesWith(folder, secret)).toEqual([])
  })

  test('works with a broken index', async () => {
    await sessionWithSecret('doomed')
    await useIndex()
    writeFileSync(indexFileIn(folder), `not a database, but ${secret}`)
    await store.erase('doomed')
    expect(filesWith(folder, secret)).toEqual([])
  })

  test('waits for a transaction of another process on the index', async () => {
    await sessionWithSecret('doomed')
    await useIndex()
    const other = new DatabaseSync(indexFileIn(folder))
    other.exec('BEGIN IMMEDIATE')
    const erasing = store.erase('doomed')
    // Hidden at once, while the index is still in use.
    await until(() => !existsSync(join(folder, 'doomed')))
    other.exec('ROLLBACK')
    other.close()
    await erasing
    expect(filesWith(folder, secret)).toEqual([])
  })

  test('a connection of another process to the old index writes nothing beside the new one', async () => {
    await sessionWithSecret('doomed')
    await useIndex()
    const other = IndexDb.open(indexFileIn(folder))
    const source = other.sourceNumber('', 'list')
    const row = other.row(source, 'doomed')!
    await store.erase('doomed')
    expect(() => other.saveRows(source, [row])).toThrow('index')
    other.close()
    expect(filesWith(folder, secret)).toEqual([])
  })

  test('a second store on the same folder lists and searches as before', async () => {
    await using session = await store.create({ id: 'other', name: 'Other' })
    await user(session, 'needle')
    await sessionWithSecret('doomed')
    const second = openFileStore({ folder })
    for (const each of [store, second]) expect(await each.search({ text: 'needle' })).toHaveLength(1)
    await store.erase('doomed')
    for (const each of [store, second]) {
      expect(await namesOf(each)).toEqual(['Other'])
      expect(await each.search({ text: 'needle' })).toHaveLength(1)
      expect(await each.search({ text: secret })).toEqual([])
    }
    await second.close()
    expect(filesWith(folder, secret)).toEqual([])
  })

  test.each(['list', 'search', 'create', 'open', 'erase'] as const)(
    'an erase that a killed process left is finished by the next %s',
    async (operation) => {
      await (await store.create({ id: 'other' })).close()
      await sessionWithSecret('doomed')
      await useIndex()
      await store.close()
      await (await openFileStore({ folder }).create({ id: 'helper' })).erase()
      renameSync(join(folder, 'doomed'), join(folder, '.erasing', 'local~doomed~00'))
      rmSync(join(folder, '.erasing', 'local~doomed~00', 'events.jsonl'))
      store = openFileStore({ folder })
      await {
        list: () => store.list(),
        search: () => store.search({ text: secret }),
        create: async () => (await store.create()).close(),
        open: async () => (await store.open('other')).close(),
        erase: () => store.erase('doomed'),
      }[operation]()
      expect(readdirSync(join(folder, '.erasing'))).toEqual([])
      expect(filesWith(folder, secret)).toEqual([])
    },
  )

  test('removes discarded copies that a killed process left', async () => {
    await sessionWithSecret('doomed')
    await (await store.forkFrom('doomed', { id: 'fork' })).close()
    renameSync(join(folder, 'fork'), join(folder, '.new', '~00'))
    await store.erase('doomed')
    expect(filesWith(folder, secret)).toEqual([])
  })

  test('a log outside the store is not erased', async () => {
    await sessionWithSecret('doomed')
    const path = join(folder, 'copy.jsonl')
    writeFileSync(path, readFileSync(join(folder, 'doomed', 'events.jsonl')))
    await using loose = await store.load(path)
    await expect(loose.erase()).rejects.toMatchObject({ code: 'session-not-found' })
    expect(existsSync(path)).toBe(true)
  })
})

describe('erasing on a disk that fails', () => {
  const root = '/disk/sessions'

  async function start(): Promise<{ disk: MemoryDisk; store: FileLogStore; sessions: SessionStore }> {
    const disk = new MemoryDisk({ journal: true })
    const options = { folder: root, port: disk, lock: disk.lock }
    const sessions = openFileStore(options)
    await using session = await sessions.create({ id: 'a' })
    await user(session, secret)
    return { disk, store: new FileLogStore(options), sessions }
  }

  test.each(['makeFolder', 'rename', 'syncFolder', 'remove'] as const)(
    'a failure at any call of %s leaves the whole session or none, and a second erase finishes',
    async (operation) => {
      for (let nth = 1; ; nth++) {
        const { disk, store } = await start()
        const fault = disk.failNth({ operation, nth, error: 'EIO' })
        const error: unknown = await store.erase(localScope, 'a').catch((reason: unknown) => reason)
        if (fault.hits === 0) break
        expect(error).toMatchObject({ code: 'storage-failed', cause: { code: 'EIO' } })
        const isWhole = disk.exists(`${root}/a/events.jsonl`)
        expect(await store.placeOf(localScope, 'a')).toBe(isWhole ? 'active' : undefined)
        await store.erase(localScope, 'a')
        expect(disk.exists(`${root}/a`)).toBe(false)
        expect(disk.names(`${root}/.erasing`)).toEqual([])
      }
    },
  )

  test('a power cut after any call leaves the whole session, or one that the next use erases', async () => {
    const calls = await (async (): Promise<number> => {
      const { disk, store } = await start()
      const before = disk.calls.length
      await store.erase(localScope, 'a')
      return disk.calls.length - before
    })()
    expect(calls).toBeGreaterThan(4)
    for (const operation of ['rename', 'syncFolder', 'remove'] as const) {
      for (let nth = 1; nth <= calls; nth++) {
        const { disk, store } = await start()
        disk.failNth({ operation, nth, error: 'EIO' })
        await store.erase(localScope, 'a').catch(() => undefined)
        const after = disk.afterPowerCut()
        const again = openFileStore({ folder: root, port: after, lock: after.lock })
        const { sessions } = await again.list()
        expect(sessions.length).toBe(after.exists(`${root}/a/events.jsonl`) ? 1 : 0)
        expect(after.names(`${root}/.erasing`)).toEqual([])
        for (const { id } of sessions) expect(await again.search({ text: secret })).toMatchObject([{ sessionId: id }])
      }
    }
  })
})

/** The files below a folder that contain the text. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text))
}

async function namesOf(store: SessionStore): Promise<string[]> {
  return (await store.list()).sessions.map(({ name }) => name)
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate)
}
