import { expect, test } from 'vitest'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { DurableFolders } from './durable-folders.ts'

const root = '/home/user/sessions'

function start(): { disk: MemoryDisk; folders: DurableFolders } {
  const disk = new MemoryDisk({ journal: true })
  disk.put('/home/file', '')
  return { disk, folders: new DurableFolders(disk, root) }
}

test('every created folder is synced, from the topmost on', async () => {
  const { disk, folders } = start()
  await folders.make(`${root}/.trash`)
  expect(disk.calls).toEqual([
    'makeFolder /home/user',
    'syncFolder /home',
    'makeFolder /home/user/sessions',
    'syncFolder /home/user',
    'makeFolder /home/user/sessions/.trash',
    'syncFolder /home/user/sessions',
  ])
  expect(disk.afterPowerCut().exists(`${root}/.trash`)).toBe(true)
})

test('a folder known to be durable is not synced again', async () => {
  const { disk, folders } = start()
  await folders.make(root)
  disk.journal.length = 0
  await folders.make(root)
  expect(disk.calls).toEqual([])
})

test('a folder left by a process that died before syncing is synced once', async () => {
  const { disk, folders } = start()
  disk.makeFolder(root)
  await disk.syncFolder('/home')
  disk.journal.length = 0
  await folders.make(root)
  await folders.make(root)
  expect(disk.calls).toEqual(['syncFolder /home/user'])
})

test('a removed folder is created again', async () => {
  const { disk, folders } = start()
  await folders.make(root)
  disk.remove('/home/user')
  await folders.make(root)
  expect(disk.afterPowerCut().exists(root)).toBe(true)
})

test('an unreadable folder above the root is ignored', async () => {
  const { disk, folders } = start()
  disk.makeFolder(root)
  disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EACCES' })
  await folders.make(root)
  disk.journal.length = 0
  await folders.make(root)
  expect(disk.calls).toEqual([])
})

test('any other sync failure is reported, and retried', async () => {
  const { disk, folders } = start()
  disk.makeFolder(root)
  disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EIO' })
  await expect(folders.make(root)).rejects.toMatchObject({ code: 'EIO' })
  await folders.make(root)
  expect(disk.calls.at(-1)).toBe('syncFolder /home/user')
})

test('an unreadable folder below the root is reported', async () => {
  const { disk, folders } = start()
  disk.makeFolder(`${root}/.trash`)
  disk.failNth({ operation: 'syncFolder', nth: 2, error: 'EACCES' })
  await expect(folders.make(`${root}/.trash`)).rejects.toMatchObject({ code: 'EACCES' })
})

test('a created folder that cannot be synced is reported', async () => {
  const { disk, folders } = start()
  disk.failNth({ operation: 'syncFolder', nth: 2, error: 'EACCES' })
  await expect(folders.make(root)).rejects.toMatchObject({ code: 'EACCES' })
})

test('sessions may lie in the root of a disk', async () => {
  const disk = new MemoryDisk({ journal: true })
  const folders = new DurableFolders(disk, '/')
  await folders.make('/')
  await folders.make('/.trash')
  expect(disk.calls).toEqual(['makeFolder /.trash', 'syncFolder /'])
})
