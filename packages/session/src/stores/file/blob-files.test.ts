import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { MemoryDisk } from '../../testing/memory-disk.ts'
import { getBlobFile, putBlobFile, removeTemporaryFiles, replaceFile } from './blob-files.ts'

const folder = '/s/blobs'
const bytes = Buffer.from('a picture')
const sha256 = createHash('sha256').update(bytes).digest('hex')
const path = `${folder}/${sha256}`

function start(): MemoryDisk {
  const disk = new MemoryDisk({ journal: true })
  disk.put('/s/events.jsonl', '')
  return disk
}

/** The calls, without the random part of temporary names. */
function callsOf(disk: MemoryDisk): string[] {
  return disk.calls.map((call) => call.replace(/\.[0-9a-f]{12}\.tmp/, '.tmp').replace(sha256, 'sha'))
}

test('a blob is written, synced, renamed and its folder synced, after the folder itself is durable', async () => {
  const disk = start()
  expect(await putBlobFile(disk, folder, bytes)).toEqual({ sha256, size: 9 })
  expect(callsOf(disk)).toEqual([
    'makeFolder /s/blobs',
    'syncFolder /s',
    'create /s/blobs/sha.tmp',
    'write /s/blobs/sha.tmp 9',
    'dataSync /s/blobs/sha.tmp',
    'close /s/blobs/sha.tmp',
    'rename /s/blobs/sha.tmp',
    'syncFolder /s/blobs',
  ])
  expect(await getBlobFile(disk.afterPowerCut(), folder, sha256)).toEqual(new Uint8Array(bytes))
})

test('the same content is stored once, and is durable when put resolves', async () => {
  const disk = start()
  await putBlobFile(disk, folder, bytes)
  disk.journal.length = 0
  expect(await putBlobFile(disk, folder, bytes)).toEqual({ sha256, size: 9 })
  expect(callsOf(disk)).toEqual([
    'openRead /s/blobs/sha',
    'read /s/blobs/sha 9',
    'close /s/blobs/sha',
    'syncFolder /s/blobs',
  ])
})

test('a blob that does not match its hash is stored again', async () => {
  const disk = start()
  disk.put(path, 'changed')
  await putBlobFile(disk, folder, bytes)
  expect(Buffer.from(disk.contentOf(path)!).toString()).toBe('a picture')
})

test('an empty blob is a blob', async () => {
  const disk = start()
  const { sha256: empty } = await putBlobFile(disk, folder, new Uint8Array())
  expect(await getBlobFile(disk, folder, empty)).toEqual(new Uint8Array())
})

test('a blob folder whose name could not be synced is not treated as durable later', async () => {
  const disk = start()
  disk.failNth({ operation: 'syncFolder', nth: 1, error: 'EIO' })
  await expect(putBlobFile(disk, folder, bytes)).rejects.toMatchObject({ code: 'EIO' })
  expect(disk.exists(folder)).toBe(false)
  await putBlobFile(disk, folder, bytes)
  expect(await getBlobFile(disk.afterPowerCut(), folder, sha256)).toBeDefined()
})

test.each([
  ['create', { error: 'ENOSPC' }, 'ENOSPC'],
  ['write', { error: 'ENOSPC' }, 'ENOSPC'],
  ['write', { short: 3 }, `could not write all of ${path}`],
  ['dataSync', { error: 'EIO' }, 'EIO'],
  ['rename', { error: 'EIO' }, 'EIO'],
] as const)('a blob that fails at %s %o is rejected and leaves nothing behind', async (operation, how, message) => {
  const disk = start()
  disk.failNth({ operation, nth: 1, ...how })
  await expect(putBlobFile(disk, folder, bytes)).rejects.toThrow(message)
  expect([disk.names(folder), disk.openPaths]).toEqual([[], []])
  expect(await putBlobFile(disk, folder, bytes)).toEqual({ sha256, size: 9 })
})

test('a blob whose folder could not be synced is rejected', async () => {
  const disk = start()
  disk.failNth({ operation: 'syncFolder', nth: 1, pathEnd: 'blobs', error: 'EIO' })
  await expect(putBlobFile(disk, folder, bytes)).rejects.toMatchObject({ code: 'EIO' })
})

test('only content that matches its hash is returned', async () => {
  const disk = start()
  disk.put(path, 'changed')
  expect(await getBlobFile(disk, folder, sha256)).toBeUndefined()
  expect(await getBlobFile(disk, folder, 'f'.repeat(64))).toBeUndefined()
  expect(disk.openPaths).toEqual([])
})

test('a name that is not a hash is not looked up', async () => {
  const disk = start()
  disk.put('/s/secret', 'x')
  expect(await getBlobFile(disk, folder, '../secret')).toBeUndefined()
  expect(disk.calls).toEqual([])
})

test('a blob that cannot be read closes its descriptor', async () => {
  const disk = start()
  disk.put(path, bytes)
  disk.failNth({ operation: 'read', nth: 1, error: 'EIO' })
  await expect(getBlobFile(disk, folder, sha256)).rejects.toMatchObject({ code: 'EIO' })
  expect(disk.openPaths).toEqual([])
})

test('a file is replaced without a sync if none is requested', async () => {
  const disk = start()
  disk.put('/s/queue.json', 'old')
  await replaceFile(disk, '/s/queue.json', 'neu ü', { sync: false })
  expect(callsOf(disk)).toEqual([
    'create /s/queue.json.tmp',
    'write /s/queue.json.tmp 6',
    'close /s/queue.json.tmp',
    'rename /s/queue.json.tmp',
  ])
  expect([Buffer.from(disk.contentOf('/s/queue.json')!).toString(), disk.names('/s')]).toEqual([
    'neu ü',
    ['events.jsonl', 'queue.json'],
  ])
})

test('a file that cannot be replaced stays unchanged', async () => {
  const disk = start()
  disk.put('/s/queue.json', 'old')
  disk.failNth({ operation: 'write', nth: 1, short: 1 })
  await expect(replaceFile(disk, '/s/queue.json', 'new', { sync: false })).rejects.toThrow(
    'could not write all of /s/queue.json',
  )
  expect([Buffer.from(disk.contentOf('/s/queue.json')!).toString(), disk.names('/s')]).toEqual([
    'old',
    ['events.jsonl', 'queue.json'],
  ])
})

test('two temporary names of the same file differ', async () => {
  const disk = start()
  await replaceFile(disk, '/s/queue.json', 'a', { sync: false })
  await replaceFile(disk, '/s/queue.json', 'b', { sync: false })
  const created = disk.calls.filter((call) => call.startsWith('create'))
  expect(created).toHaveLength(2)
  expect(created[0]).toMatch(/^create \/s\/queue\.json\.[0-9a-f]{12}\.tmp$/)
  expect(created[0]).not.toBe(created[1])
})

test('only temporary files are removed', () => {
  const disk = start()
  for (const name of ['a.tmp', 'b.tmp.json', 'tmp', 'checkpoint.json.0123.tmp']) disk.put(`/s/${name}`, 'x')
  removeTemporaryFiles(disk, '/s')
  expect(disk.names('/s')).toEqual(['events.jsonl', 'b.tmp.json', 'tmp'])
  removeTemporaryFiles(disk, '/missing')
})
