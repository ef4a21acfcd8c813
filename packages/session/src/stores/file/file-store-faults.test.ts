import { describe, expect, test } from 'vitest'
import { localScope } from '../../log/log-store.ts'
import { sealLine, type SealedLine } from '../../line/seal-line.ts'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { FileLogStore } from './file-store.ts'

const folder = '/disk/sessions'

function header(id: string): SealedLine {
  return sealLine({ type: 'session', id }, 1)
}

function start(): { disk: MemoryDisk; store: FileLogStore } {
  const disk = new MemoryDisk({ journal: true })
  disk.put('/disk/file', '')
  return { disk, store: new FileLogStore({ folder, port: disk, lock: disk.lock }) }
}

async function withSession(): Promise<{ disk: MemoryDisk; store: FileLogStore }> {
  const { disk, store } = start()
  await store.create(localScope, 'a', header('a'))
  disk.journal.length = 0
  return { disk, store }
}

const failed = { name: 'SessionError', code: 'storage-failed' }

describe('a new session', () => {
  test('is durable once created, with every folder above it', async () => {
    const { disk, store } = start()
    await store.create(localScope, 'a', header('a'))
    const content = disk.afterPowerCut().contentOf(`${folder}/a/events.jsonl`)
    expect(Buffer.from(content!).toString()).toBe(`${header('a').text}\n`)
  })

  test.each(['makeFolder', 'create', 'write', 'dataSync', 'syncFolder', 'rename'] as const)(
    'that fails at any call of %s does not exist, and can be created later',
    async (operation) => {
      for (let nth = 1; ; nth++) {
        const { disk, store } = start()
        const fault = disk.failNth({ operation, nth, error: 'EIO' })
        const error: unknown = await store.create(localScope, 'a', header('a')).catch((reason: unknown) => reason)
        if (fault.hits === 0) break
        expect(error).toMatchObject({ ...failed, cause: { code: 'EIO' } })
        expect(await store.placeOf(localScope, 'a')).toBeUndefined()
        await store.create(localScope, 'a', header('a'))
        expect(disk.afterPowerCut().exists(`${folder}/a/events.jsonl`)).toBe(true)
      }
    },
  )

  test('with a partly written header is rejected', async () => {
    const { disk, store } = start()
    disk.failNth({ operation: 'write', nth: 1, short: 5 })
    await expect(store.create(localScope, 'a', header('a'))).rejects.toMatchObject(failed)
    expect(disk.openPaths).toEqual([])
  })

  test('is gone after a discard, even if it cannot be renamed', async () => {
    for (const isRefused of [false, true]) {
      const { disk, store } = await withSession()
      if (isRefused) disk.failNth({ operation: 'rename', nth: 1 })
      await store.discard(localScope, 'a')
      expect(await store.placeOf(localScope, 'a')).toBeUndefined()
    }
  })
})

describe('opening', () => {
  test('syncs the name of a session whose creator died', async () => {
    const { disk, store } = start()
    disk.makeFolder(`${folder}/a`)
    disk.write(disk.create(`${folder}/a/events.jsonl`), Buffer.from(`${header('a').text}\n`))
    await store.claim(localScope, 'a')
    expect(disk.afterPowerCut().exists(`${folder}/a/events.jsonl`)).toBe(true)
  })

  test('for writing is rejected if it cannot be made durable, and holds no lock', async () => {
    const { disk, store } = await withSession()
    disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EIO' })
    await expect(store.claim(localScope, 'a')).rejects.toMatchObject({ ...failed, cause: { code: 'EIO' } })
    expect(await store.claim(localScope, 'a')).toMatchObject({ type: 'claimed' })
  })

  test.each(['openAppend', 'dataSync', 'openRead'] as const)(
    'for writing that fails at %s rejects, and leaves no descriptor and no lock',
    async (operation) => {
      const { disk, store } = await withSession()
      disk.failNth({ operation, nth: 1, error: 'EIO' })
      await expect(store.claim(localScope, 'a')).rejects.toMatchObject({ ...failed, cause: { code: 'EIO' } })
      expect(disk.openPaths).toEqual([])
      expect(await store.claim(localScope, 'a')).toMatchObject({ type: 'claimed' })
    },
  )

  test('for reading reports a failure', async () => {
    const { disk, store } = await withSession()
    disk.failNth({ operation: 'openRead', nth: 1, error: 'EMFILE' })
    await expect(store.open(localScope, 'a')).rejects.toMatchObject({ ...failed, cause: { code: 'EMFILE' } })
  })
})

describe('moving', () => {
  test('syncs the target folder before the source folder', async () => {
    const { disk, store } = await withSession()
    await store.move(localScope, 'a', 'trash')
    const after = disk.calls.slice(disk.calls.indexOf(`rename ${folder}/a`))
    expect(after).toEqual([`rename ${folder}/a`, `syncFolder ${folder}/.trash`, `syncFolder ${folder}`])
    expect(disk.afterPowerCut().exists(`${folder}/.trash/a/events.jsonl`)).toBe(true)
    expect(disk.afterPowerCut().exists(`${folder}/a`)).toBe(false)
  })

  test('from one place to a new one keeps the first durable too', async () => {
    const { disk, store } = await withSession()
    await store.move(localScope, 'a', 'archive')
    await store.move(localScope, 'a', 'trash')
    expect(disk.afterPowerCut().exists(`${folder}/.trash/a/events.jsonl`)).toBe(true)
  })

  test.each(['rename', 'syncFolder'] as const)(
    'that fails at any call of %s rejects, and can be retried',
    async (operation) => {
      for (let nth = 1; ; nth++) {
        const { disk, store } = await withSession()
        const fault = disk.failNth({ operation, nth, error: 'EIO' })
        const error: unknown = await store.move(localScope, 'a', 'trash').catch((reason: unknown) => reason)
        if (fault.hits === 0) break
        expect(error).toMatchObject({ ...failed, cause: { code: 'EIO' } })
        await store.move(localScope, 'a', 'trash')
        const found = disk.afterPowerCut()
        expect([found.exists(`${folder}/a`), found.exists(`${folder}/.trash/a/events.jsonl`)]).toEqual([false, true])
      }
    },
  )

  test('to its current place resolves only when that is durable', async () => {
    const { disk, store } = await withSession()
    disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EIO' })
    await expect(store.move(localScope, 'a', 'active')).rejects.toMatchObject({ ...failed, cause: { code: 'EIO' } })
    await store.move(localScope, 'a', 'active')
    expect(await store.placeOf(localScope, 'a')).toBe('active')
  })
})
