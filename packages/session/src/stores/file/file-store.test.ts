import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sealLine } from '../../line/seal-line.ts'
import type { SessionStore } from '../../store/session-store.ts'
import { said, user } from '../../testing/builders.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { testSessionStore } from '../../testing/store-contract.ts'
import { FileLogStore, openFileStore, type FileStoreOptions } from './file-store.ts'
import { scanIndex } from './session-index/scan-index.ts'

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
        port: new FileLogStore({ folder }),
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

test('a list shows a run as interrupted once its session is closed in this process', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tapetree-'))
  const store = openFileStore({ folder })
  const session = await store.create()
  await user(session, 'go')
  await session.append({ type: 'run_start', runStart: { runId: 'run', leafId: session.leafId } })
  expect((await store.list()).sessions).toMatchObject([{ status: 'running' }])
  await session.close()
  expect((await store.list()).sessions).toMatchObject([{ status: 'idle', stopped: { type: 'interrupted' } }])
  await store.close()
  rmSync(folder, { recursive: true })
})

describe('the storage check', () => {
  const check = (disk: MemoryDisk): Promise<void> => onDisk(disk).checkStorage()

  test('makes a small write that leaves nothing behind', async () => {
    const disk = new MemoryDisk()
    await check(disk)
    expect(disk.names('/root/.new')).toEqual([])
  })

  test.each([
    ['a write that takes only a part', { operation: 'write', nth: 1, short: 3 }, 'the disk is full'],
    ['a sync that fails', { operation: 'dataSync', nth: 1, error: 'EIO' }, 'EIO'],
  ] as const)('fails after %s, and leaves nothing behind', async (_, fault, reason) => {
    const disk = new MemoryDisk()
    disk.failNth(fault)
    await expect(check(disk)).rejects.toMatchObject({
      code: 'storage-failed',
      message: expect.stringContaining(reason),
    })
    expect(disk.names('/root/.new')).toEqual([])
    await check(disk)
  })
})

describe('file store on a modeled disk', () => {
  testSessionStore({
    test,
    open: async () => {
      const disk = new MemoryDisk()
      return {
        store: onDisk(disk),
        port: new FileLogStore({ folder: '/root', port: disk, lock: disk.lock, index: scanIndex(disk) }),
        reopen: async () => onDisk(disk),
        writeBehindBack: async (sessionId) => {
          const fd = disk.openAppend(`/root/${sessionId}/events.jsonl`)
          disk.write(fd, Buffer.from(`${sealLine({ type: 'custom', id: 'foreign', parent_id: null }, 4).text}\n`))
          disk.close(fd)
        },
        close: async () => undefined,
      }
    },
  })

  test('nothing stays open, locked or temporary after everything is closed', async () => {
    const disk = new MemoryDisk()
    const store = onDisk(disk)
    const session = await store.create({ id: 's' })
    await user(session, 'x'.repeat(300_000))
    await store.verify('s')
    await (await store.forkFrom('s')).close()
    await session.close()
    expect(disk.openPaths).toEqual([])
    expect(disk.names('/root/s').toSorted()).toEqual([
      'blobs',
      'checkpoint.json',
      'events.jsonl',
      'metadata.json',
      'queue.json',
    ])
    expect(await disk.lock('/root/s/lock')).toMatchObject({ type: 'locked' })
  })

  test.each([
    ['write', 'short', { operation: 'write', nth: 1, short: 10 }],
    ['write', 'ENOSPC', { operation: 'write', nth: 1, error: 'ENOSPC' }],
    ['dataSync', 'EIO', { operation: 'dataSync', nth: 1, error: 'EIO' }],
    ['rename', 'EIO', { operation: 'rename', nth: 1, error: 'EIO' }],
    ['syncFolder', 'EIO', { operation: 'syncFolder', nth: 3, error: 'EIO' }],
  ] as const)(
    'a session whose %s fails (%s) during creation is reported and does not exist',
    async (_op, _how, fault) => {
      const disk = new MemoryDisk()
      const store = onDisk(disk)
      disk.failNth(fault)
      await expect(store.create({ id: 's' })).rejects.toMatchObject({ code: 'storage-failed' })
      disk.clearFaults()
      expect(disk.names('/root/.new')).toEqual([])
      expect(disk.openPaths).toEqual([])
    },
  )

  test('a log that cannot be opened for writing is reported, and its lock is released', async () => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 's' })).close()
    disk.failNth({ operation: 'dataSync', nth: 1, error: 'EIO', pathEnd: 'events.jsonl' })
    await expect(onDisk(disk).open('s')).rejects.toMatchObject({ code: 'storage-failed' })
    disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EIO' })
    await expect(onDisk(disk).open('s')).rejects.toMatchObject({ code: 'storage-failed' })
    disk.clearFaults()
    const session = await onDisk(disk).open('s')
    expect(session.readOnlyReason).toBeUndefined()
  })

  test('a session that cannot be moved is reported and stays in place', async () => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 's' })).close()
    disk.failNth({ operation: 'rename', nth: 1, error: 'EIO' })
    await expect(onDisk(disk).archive('s')).rejects.toMatchObject({ code: 'storage-failed' })
    await (await onDisk(disk).open('s')).close()
    await onDisk(disk).restore('s')
  })

  test('the owner file names the owner and its address; a broken one only loses that', async () => {
    const disk = new MemoryDisk()
    await using session = await onDisk(disk).create({ id: 's' })
    await session.close()
    const holder = await onDisk(disk).open('s', { address: 'unix:/run/tapetree.sock' })
    const other = await onDisk(disk).open('s')
    expect(other.owner).toMatchObject({ process: String(process.pid), address: 'unix:/run/tapetree.sock' })
    expect(other.readOnlyReason).toBe(`Process ${process.pid} on ${other.owner?.host} is writing this session.`)
    disk.put('/root/s/owner.json', 'not json')
    expect((await onDisk(disk).open('s')).readOnlyReason).toBe('Another process is writing this session.')
    disk.put('/root/s/owner.json', '{"host":"h","process":"7"}')
    expect((await onDisk(disk).open('s')).owner).toEqual({
      reason: 'Process 7 on h is writing this session.',
      host: 'h',
      process: '7',
    })
    await holder.close()
    expect(disk.exists('/root/s/owner.json')).toBe(false)
  })

  test('an owner that cannot write its owner file still owns the session', async () => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 's' })).close()
    disk.failNth({ operation: 'create', nth: 1, error: 'ENOSPC' })
    const session = await onDisk(disk).open('s')
    expect(session.readOnlyReason).toBeUndefined()
  })

  test('without a kernel lock a session is read-only unless the user insists', async () => {
    const disk = new MemoryDisk()
    const lock: FileStoreOptions['lock'] = async () => ({ type: 'unavailable', reason: 'no locks on this disk' })
    const store = onDisk(disk, { lock })
    const session = await store.create({ id: 's' })
    expect(session.readOnlyReason).toBe('no locks on this disk')
    const insisting = await store.open('s', { insist: true })
    await user(insisting, 'written')
    await insisting.close()
    await store.archive('s')
    expect((await store.list({ place: 'archive' })).sessions.length).toBe(1)
  })

  test('a copy that cannot be locked is a storage failure, and nothing of it is left', async () => {
    const disk = new MemoryDisk()
    await using session = await onDisk(disk).create({ id: 's' })
    await user(session, 'words')
    const lock: FileStoreOptions['lock'] = async () => ({ type: 'unavailable', reason: 'no locks on this disk' })
    const copied = onDisk(disk, { lock }).forkFrom('s')
    await expect(copied).rejects.toMatchObject({ code: 'storage-failed', message: 'no locks on this disk' })
    expect(disk.names('/root').filter((name) => !name.startsWith('.'))).toEqual(['s'])
  })

  test('a copy that another process has opened first is owned by it, even if that process is not known yet', async () => {
    const disk = new MemoryDisk()
    await using session = await onDisk(disk).create({ id: 's' })
    await user(session, 'words')
    const copied = onDisk(disk, { lock: async () => ({ type: 'held' }) }).forkFrom('s')
    await expect(copied).rejects.toMatchObject({ code: 'session-owned' })
  })

  test.each(['create', 'fork'])('what another process writes into a new session first is kept: %s', async (way) => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 'source' })).close()
    const lock: FileStoreOptions['lock'] = async () => {
      await using session = await onDisk(disk).open('new')
      await user(session, 'acknowledged')
      return { type: 'held' }
    }
    const store = onDisk(disk, { lock })
    const options = { id: 'new', name: 'Named' }
    const made = way === 'create' ? store.create(options) : store.forkFrom('source', options)
    await expect(made).rejects.toMatchObject({ code: 'session-owned' })
    await using session = await onDisk(disk).open('new')
    expect(await said(session)).toEqual(['user: acknowledged'])
  })

  test('a copy that another process archives before it is complete is not found, and stays in the archive', async () => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 'source' })).close()
    const lock: FileStoreOptions['lock'] = async () => {
      await onDisk(disk).archive('new')
      return { type: 'unavailable', reason: 'ENOENT' }
    }
    const copied = onDisk(disk, { lock }).forkFrom('source', { id: 'new' })
    await expect(copied).rejects.toMatchObject({ code: 'session-not-found' })
    expect((await onDisk(disk).list({ place: 'archive' })).sessions).toMatchObject([{ id: 'new' }])
  })

  test('a session that is opened or created is read-only if another process has created and opened it first', async () => {
    const disk = new MemoryDisk()
    await using session = await onDisk(disk, { lock: async () => ({ type: 'held' }) }).open('new', { create: true })
    expect(session.readOnlyReason).toContain('Another process')
  })

  test('without a kernel lock a session is erased as well, and an unfinished erase is finished', async () => {
    const disk = new MemoryDisk()
    const lock: FileStoreOptions['lock'] = async () => ({ type: 'unavailable', reason: 'no locks on this disk' })
    await (await onDisk(disk).create({ id: 's' })).close()
    disk.put('/root/.erasing/left/events.jsonl', 'half')
    const store = onDisk(disk, { lock })
    await store.erase('s')
    expect(disk.names('/root/.erasing')).toEqual([])
    disk.put('/root/.erasing/other/events.jsonl', 'half')
    await onDisk(disk, { lock }).list()
    expect(disk.names('/root/.erasing')).toEqual([])
  })

  test('an erase that another process is at is left to it', async () => {
    const disk = new MemoryDisk()
    await (await onDisk(disk).create({ id: 's' })).close()
    disk.put('/root/.erasing/left/events.jsonl', 'half')
    await onDisk(disk, { lock: async () => ({ type: 'held' }) }).list()
    expect(disk.names('/root/.erasing')).toEqual(['left'])
  })

  test('the next create removes an incomplete session after an hour, not earlier', async () => {
    const disk = new MemoryDisk()
    const old = (Date.now() - 2 * 60 * 60 * 1000).toString(36)
    const fresh = Date.now().toString(36)
    disk.put(`/root/.new/${old}-aabbcc/events.jsonl`, 'half')
    disk.put(`/root/.new/${fresh}-aabbcc/events.jsonl`, 'half')
    await (await onDisk(disk).create({ id: 's' })).close()
    expect(disk.names('/root/.new')).toEqual([`${fresh}-aabbcc`])
  })

  test('a folder in the place of a derived file is replaced', async () => {
    const disk = new MemoryDisk()
    await using session = await onDisk(disk).create({ id: 's' })
    disk.put('/root/s/checkpoint.json/inside', 'x')
    await user(session, 'words')
    await session.saveDerived()
    const saved = disk.contentOf('/root/s/checkpoint.json')
    expect(saved).toBeDefined()
    await user(session, 'more words')
    disk.failNth({ operation: 'create', nth: 1, error: 'ENOSPC', pathEnd: '.tmp' })
    await session.saveDerived()
    expect(disk.contentOf('/root/s/checkpoint.json')).toEqual(saved)
  })

  test('temporary files of a killed writer are removed by the next open', async () => {
    const disk = new MemoryDisk()
    const session = await onDisk(disk).create({ id: 's' })
    await session.putBlob(new Uint8Array(10))
    await session.close()
    disk.put('/root/s/checkpoint.json.aabbcc.tmp', 'half')
    disk.put('/root/s/blobs/0000.aabbcc.tmp', 'half')
    await (await onDisk(disk).open('s')).close()
    expect(disk.names('/root/s').filter((name) => name.endsWith('.tmp'))).toEqual([])
    expect(disk.names('/root/s/blobs').length).toBe(1)
  })
})

describe('sessions on a real disk', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tapetree-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  test('files are 0600 and folders 0700, whatever the umask is', async () => {
    const before = process.umask(0)
    try {
      const store = openFileStore({ folder: join(folder, 'root') })
      const session = await store.create({ id: 's' })
      await user(session, 'x'.repeat(300_000))
      await session.close()
      await store.list()
      await store.search({ text: 'words' })
      await store.close()
    } finally {
      process.umask(before)
    }
    const found = readdirSync(join(folder, 'root'), { recursive: true, withFileTypes: true })
    expect(found.length).toBeGreaterThan(6)
    for (const entry of found) {
      const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777
      expect([entry.name, mode.toString(8)]).toEqual([entry.name, entry.isDirectory() ? '700' : '600'])
    }
  })

  test('a log is loaded by its folder, by its own path, and by the path of any .jsonl file', async () => {
    const store = openFileStore({ folder })
    const session = await store.create({ id: 'mine' })
    await user(session, 'hello')
    await session.close()
    for (const path of [join(folder, 'mine'), join(folder, 'mine', 'events.jsonl')]) {
      const loaded = await store.load(path)
      expect([loaded.id, await said(loaded)]).toEqual(['mine', ['user: hello']])
      const second = await openFileStore({ folder }).load(path)
      expect(second.owner).toBeDefined()
      await second.close()
      await loaded.close()
      const reading = await store.load(path, { readOnly: true })
      await reading.close()
    }
    const loose = join(folder, 'a plain file.jsonl')
    writeFileSync(
      loose,
      '{"type":"session","id":"sess-1","version":1,"timestamp":"2024-01-01T10:00:00Z"}\n' +
        '{"type":"message","id":"m-1","parent_id":null,"timestamp":"2024-01-01T10:00:01Z","message":{"role":"user","content":[{"type":"text","text":{"content":"plain"}}]}}\n',
    )
    const plain = await store.load(loose)
    await user(plain, 'and more')
    await plain.close()
    await using again = await store.load(loose)
    expect([again.id, await said(again)]).toEqual(['sess-1', ['user: plain', 'user: and more']])
    await using fork = await store.forkFrom(loose)
    expect(await said(fork)).toEqual(['user: plain', 'user: and more'])
    await expect(store.load(join(folder, 'nowhere'))).rejects.toMatchObject({ code: 'session-not-found' })
  })

  test('a log that is a symbolic link is not opened', async () => {
    const store = openFileStore({ folder })
    await (await store.create({ id: 'real' })).close()
    await (await store.create({ id: 'linked' })).close()
    rmSync(join(folder, 'linked', 'events.jsonl'))
    symlinkSync(join(folder, 'real', 'events.jsonl'), join(folder, 'linked', 'events.jsonl'))
    await expect(store.open('linked', { readOnly: true })).rejects.toThrow(/ELOOP/)
  })

  test('no id leads out of the folder', async () => {
    const store = openFileStore({ folder: join(folder, 'root') })
    await (await store.create({ id: 'inside' })).close()
    for (const id of escapes()) {
      await expect(store.open(id)).rejects.toMatchObject({ code: 'invalid-id' })
      await expect(store.create({ id })).rejects.toMatchObject({ code: 'invalid-id' })
      await expect(store.archive(id)).rejects.toMatchObject({ code: 'invalid-id' })
      await expect(store.delete(id)).rejects.toMatchObject({ code: 'invalid-id' })
      expect(() => store.queue(id)).toThrow(/not a valid session id/)
      await expect(store.withScope({ tenant: id }).list()).rejects.toMatchObject({ code: 'invalid-id' })
    }
    expect(readdirSync(folder)).toEqual(['root'])
  })

  test('a change to a session that another process writes wakes waiting readers', async () => {
    const store = openFileStore({ folder })
    const session = await store.create({ id: 's' })
    const waiting = new AbortController()
    const { FileLogStore } = await import('./file-store.ts')
    const log = await new FileLogStore({ folder }).open(store.scope, 's')
    const changed = log.changed(waiting.signal)
    await user(session, 'news')
    await changed
    const aborted = log.changed(waiting.signal)
    waiting.abort()
    await expect(aborted).resolves.toBeUndefined()
    await log.close()
    await session.close()
  })
})

function onDisk(disk: MemoryDisk, options: Partial<FileStoreOptions> = {}): SessionStore {
  return openFileStore({ folder: '/root', port: disk, lock: disk.lock, index: scanIndex(disk), ...options })
}

/** More than 400 ways to name something that is not a session of this store. */
function escapes(): string[] {
  const up = [
    '..',
    '.',
    '../..',
    '../../etc/passwd',
    '..\\..',
    '/etc/passwd',
    '//server/share',
    'C:\\Windows',
    'c:',
    '~',
    '~root',
  ]
  const encoded = ['%2e%2e', '%2e%2e%2f', '..%2f', '%252e%252e', '..%c0%af', '..%u2215', '\u2025', '\uff0e\uff0e/']
  const odd = [
    '',
    ' ',
    'a b',
    'a\0b',
    'a\nb',
    'a\tb',
    'a/b',
    'a\\b',
    'a:b',
    'a*b',
    'a?b',
    'a|b',
    'a<b',
    'a>b',
    'a"b',
    "a'b",
    'é',
  ]
  const devices = [
    'con.',
    'nul.txt',
    'aux.',
    'prn:',
    'com1:',
    'lpt1.',
    '$MFT',
    '.git',
    '.archive',
    '.trash',
    '.tenants',
  ]
  const base = [...up, ...encoded, ...odd, ...devices, 'x'.repeat(65), 'x'.repeat(5000), '\u202eabc', 'a\u0301', '🙂']
  return base.flatMap((name) => [
    name,
    `${name}/`,
    `./${name}`,
    `a/${name}`,
    `${name}/a`,
    `${name}\0`,
    ` ${name}`,
    `${name}.`,
  ])
}
