import { expect, test } from 'vitest'
import { MemoryDisk } from './memory-disk.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

/** The content at a path on a disk; undefined if there is none. */
function contentAt(disk: MemoryDisk, path: string): string | undefined {
  const content = disk.contentOf(path)
  return content && Buffer.from(content).toString()
}

test('a write is visible at once and survives a power cut only after a sync', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'a')
  const fd = disk.openAppend('/log')
  expect(disk.write(fd, bytes('b'))).toBe(1)
  await disk.dataSync(fd)
  disk.write(fd, bytes('c'))
  expect([disk.size(fd), contentAt(disk, '/log')]).toEqual([3, 'abc'])
  expect(contentAt(disk.afterProcessCrash(), '/log')).toBe('abc')
  expect(contentAt(disk.afterPowerCut(), '/log')).toBe('ab')
})

test('a truncation is lost in a power cut like a write', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'abc')
  const fd = disk.openAppend('/log')
  disk.truncate(fd, 1)
  expect([contentAt(disk, '/log'), contentAt(disk.afterPowerCut(), '/log')]).toEqual(['a', 'abc'])
  await disk.dataSync(fd)
  expect(contentAt(disk.afterPowerCut(), '/log')).toBe('a')
  expect(() => disk.truncate(fd, 2)).toThrow('EINVAL')
})

test('every descriptor writes at the current end', () => {
  const disk = new MemoryDisk()
  disk.put('/log', '')
  const [one, other] = [disk.openAppend('/log'), disk.openAppend('/log')]
  disk.write(one, bytes('a'))
  disk.write(other, bytes('b'))
  disk.write(one, bytes('c'))
  expect(contentAt(disk, '/log')).toBe('abc')
})

test('a sync after a failed one does not restore what that one lost', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'a')
  const fd = disk.openAppend('/log')
  disk.write(fd, bytes('b'))
  disk.failNth({ operation: 'dataSync', nth: 1 })
  await expect(disk.dataSync(fd)).rejects.toMatchObject({ code: 'EIO' })
  disk.write(fd, bytes('c'))
  await disk.dataSync(fd)
  expect([contentAt(disk, '/log'), contentAt(disk.afterPowerCut(), '/log')]).toEqual(['abc', 'a\0c'])
})

test('after a failed sync the same bytes written again are durable', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'a')
  const fd = disk.openAppend('/log')
  disk.write(fd, bytes('b'))
  disk.failNth({ operation: 'dataSync', nth: 1, error: 'ENOSPC' })
  await expect(disk.dataSync(fd)).rejects.toMatchObject({ code: 'ENOSPC' })
  disk.truncate(fd, 1)
  disk.write(fd, bytes('b'))
  await disk.dataSync(fd)
  expect(contentAt(disk.afterPowerCut(), '/log')).toBe('ab')
})

test('a new file is lost in a power cut until its folder and all parents are synced', async () => {
  const disk = new MemoryDisk()
  disk.makeFolder('/one/two')
  const fd = disk.create('/one/two/file')
  disk.write(fd, bytes('x'))
  await disk.dataSync(fd)
  await disk.syncFolder('/one/two')
  await disk.syncFolder('/one')
  expect(disk.afterPowerCut().exists('/one')).toBe(false)
  await disk.syncFolder('/')
  expect(contentAt(disk.afterPowerCut(), '/one/two/file')).toBe('x')
})

test('a rename is atomic and becomes durable when the folder is synced', async () => {
  const disk = new MemoryDisk()
  disk.put('/a', 'old')
  disk.put('/b', 'new')
  await disk.rename('/b', '/a')
  expect([disk.names('/'), contentAt(disk, '/a')]).toEqual([['a'], 'new'])
  expect([disk.afterPowerCut().names('/'), contentAt(disk.afterPowerCut(), '/a')]).toEqual([['a', 'b'], 'old'])
  await disk.syncFolder('/')
  expect([disk.afterPowerCut().names('/'), contentAt(disk.afterPowerCut(), '/a')]).toEqual([['a'], 'new'])
})

test('a moved folder keeps its files, and open descriptors stay valid', async () => {
  const disk = new MemoryDisk()
  disk.put('/from/session/log', 'a')
  disk.makeFolder('/to')
  const fd = disk.openAppend('/from/session/log')
  await disk.rename('/from/session', '/to/session')
  disk.write(fd, bytes('b'))
  expect([disk.names('/from'), contentAt(disk, '/to/session/log')]).toEqual([[], 'ab'])
})

test('conflicting calls fail as on a real system', async () => {
  const disk = new MemoryDisk()
  disk.put('/full/file', 'x')
  disk.put('/other/file', 'y')
  const fd = disk.openRead('/full/file')
  expect(() => disk.create('/full/file')).toThrow('EEXIST')
  expect(() => disk.create('/missing/file')).toThrow('ENOENT')
  expect(() => disk.create('/full/file/below')).toThrow('ENOTDIR')
  expect(() => disk.openRead('/missing')).toThrow('ENOENT')
  expect(() => disk.openAppend('/full')).toThrow('EISDIR')
  expect(() => disk.makeFolder('/full/file/below')).toThrow('ENOTDIR')
  expect(() => disk.write(fd, bytes('x'))).toThrow('EBADF')
  await expect(disk.rename('/missing', '/new')).rejects.toThrow('ENOENT')
  await expect(disk.rename('/other', '/full')).rejects.toThrow('ENOTEMPTY')
  await expect(disk.syncFolder('/missing')).rejects.toThrow('ENOENT')
  disk.close(fd)
  expect(() => disk.close(fd)).toThrow('EBADF')
  expect(() => disk.size(fd)).toThrow('EBADF')
})

test('removing a folder removes its content and ignores missing paths', () => {
  const disk = new MemoryDisk()
  disk.put('/folder/file', 'x')
  disk.remove('/folder')
  disk.remove('/folder')
  expect([disk.exists('/folder'), disk.names('/folder'), disk.contentOf('/folder')]).toEqual([false, [], undefined])
})

test('a read returns the bytes from a position on', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'abcdef')
  const fd = disk.openRead('/log')
  const target = new Uint8Array(4)
  expect([await disk.read(fd, target, 4), Buffer.from(target).toString()]).toEqual([2, 'ef\0\0'])
  expect(await disk.read(fd, target, 9)).toBe(0)
})

test('the Nth call from now on fails, as often as requested, and only on matching paths', () => {
  const disk = new MemoryDisk()
  disk.put('/log', '')
  disk.put('/other', '')
  const [log, other] = [disk.openAppend('/log'), disk.openAppend('/other')]
  const fault = disk.failNth({ operation: 'write', nth: 2, times: 2, pathEnd: 'log', error: 'EDQUOT' })
  const outcomes = [log, other, log, other, log, log].map((fd) => {
    try {
      return disk.write(fd, bytes('x'))
    } catch (error) {
      return (error as NodeJS.ErrnoException).code
    }
  })
  expect(outcomes).toEqual([1, 1, 'EDQUOT', 1, 'EDQUOT', 1])
  expect(fault.hits).toBe(2)
  disk.failNth({ operation: 'write', nth: 1 })
  disk.clearFaults()
  expect(disk.write(log, bytes('x'))).toBe(1)
})

test('a short write takes effect even if it fails', () => {
  const disk = new MemoryDisk()
  disk.put('/log', '')
  const fd = disk.openAppend('/log')
  disk.failNth({ operation: 'write', nth: 1, short: 2 })
  expect(disk.write(fd, bytes('abc'))).toBe(2)
  disk.failNth({ operation: 'write', nth: 1, short: 1, error: 'EIO' })
  expect(() => disk.write(fd, bytes('xyz'))).toThrow('EIO')
  disk.failNth({ operation: 'write', nth: 1, short: 0 })
  expect(disk.write(fd, bytes('xyz'))).toBe(0)
  expect(contentAt(disk, '/log')).toBe('abx')
})

test('every kind of call can be made to fail without taking effect', async () => {
  const disk = new MemoryDisk()
  disk.put('/a/log', 'x')
  const fd = disk.openAppend('/a/log')
  const fail = (operation: Parameters<MemoryDisk['failNth']>[0]['operation']): void => {
    disk.failNth({ operation, nth: 1, error: 'EIO' })
  }
  const before = disk.state
  fail('openAppend')
  expect(() => disk.openAppend('/a/log')).toThrow('EIO')
  fail('openRead')
  expect(() => disk.openRead('/a/log')).toThrow('EIO')
  fail('create')
  expect(() => disk.create('/a/new')).toThrow('EIO')
  fail('truncate')
  expect(() => disk.truncate(fd, 0)).toThrow('EIO')
  fail('makeFolder')
  expect(() => disk.makeFolder('/b')).toThrow('EIO')
  fail('remove')
  expect(() => disk.remove('/a/log')).toThrow('EIO')
  fail('read')
  await expect(disk.read(fd, new Uint8Array(1), 0)).rejects.toThrow('EIO')
  fail('rename')
  await expect(disk.rename('/a', '/b')).rejects.toThrow('EIO')
  fail('syncFolder')
  await expect(disk.syncFolder('/a')).rejects.toThrow('EIO')
  expect(disk.state).toBe(before)
  fail('close')
  expect(() => disk.close(fd)).toThrow('EIO')
  expect(disk.openPaths).toEqual([])
})

test('the journal names every call and keeps the disk as it was after it', async () => {
  const disk = new MemoryDisk({ journal: true })
  disk.makeFolder('/s')
  const fd = disk.create('/s/log')
  disk.write(fd, bytes('abc'))
  await disk.dataSync(fd)
  disk.truncate(fd, 1)
  disk.close(fd)
  await disk.rename('/s', '/t')
  await disk.syncFolder('/')
  disk.remove('/t')
  expect(disk.calls).toEqual([
    'makeFolder /s',
    'create /s/log',
    'write /s/log 3',
    'dataSync /s/log',
    'truncate /s/log 1',
    'close /s/log',
    'rename /s',
    'syncFolder /',
    'remove /t',
  ])
  const then = disk.journal.map(({ state }) => contentAt(new MemoryDisk({ state }), '/s/log'))
  expect(then).toEqual([undefined, '', 'abc', 'abc', 'a', 'a', undefined, undefined, undefined])
})

test('a disk that starts from a state does not change that state', () => {
  const disk = new MemoryDisk()
  disk.put('/log', 'abc')
  const { state } = disk
  const [one, other] = [new MemoryDisk({ state }), new MemoryDisk({ state })]
  one.write(one.openAppend('/log'), bytes('d'))
  other.write(other.openAppend('/log'), bytes('e'))
  other.create('/new')
  expect([disk, one, other].map((each) => contentAt(each, '/log'))).toEqual(['abc', 'abcd', 'abce'])
  expect([disk.exists('/new'), one.exists('/new')]).toEqual([false, false])
})

test('a lock has one holder until it is released, once', async () => {
  const disk = new MemoryDisk()
  const first = await disk.lock('/s/lock')
  expect([first.type, (await disk.lock('/s/lock')).type, (await disk.lock('/t/lock')).type]).toEqual([
    'locked',
    'held',
    'locked',
  ])
  if (first.type !== 'locked') throw new Error('not locked')
  expect(first.lock.isIntact()).toBe(true)
  first.lock.release()
  const second = await disk.lock('/s/lock')
  first.lock.release()
  expect([first.lock.isIntact(), second.type, (await disk.lock('/s/lock')).type]).toEqual([false, 'locked', 'held'])
})

test('waiting for a change ends with a write, a rename to the path, or the signal', async () => {
  const disk = new MemoryDisk()
  disk.put('/log', '')
  disk.put('/other', '')
  const { signal } = new AbortController()
  const woken: string[] = []
  const written = disk.changed('/log', signal).then(() => woken.push('write'))
  disk.write(disk.openAppend('/other'), bytes('x'))
  await Promise.resolve()
  expect(woken).toEqual([])
  disk.write(disk.openAppend('/log'), bytes('x'))
  await written
  const replaced = disk.changed('/log', signal).then(() => woken.push('rename'))
  await disk.rename('/other', '/log')
  await replaced
  const stop = new AbortController()
  const stopped = disk.changed('/log', stop.signal).then(() => woken.push('signal'))
  stop.abort()
  await stopped
  await disk.changed('/log', stop.signal)
  expect(woken).toEqual(['write', 'rename', 'signal'])
})
