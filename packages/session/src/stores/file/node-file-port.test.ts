import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { nodeFilePort } from './node-file-port.ts'

describe('node file port', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tapetree-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  test('a file is created once, appended to, measured, read and truncated', async () => {
    const port = nodeFilePort()
    const path = join(folder, 'file')
    const fd = port.create(path)
    expect(() => port.create(path)).toThrow(/EEXIST/)
    expect(port.write(fd, Buffer.from('hello world'))).toBe(11)
    port.truncate(fd, 5)
    expect(port.size(fd)).toBe(5)
    const bytes = new Uint8Array(10)
    expect(await port.read(fd, bytes, 1)).toBe(4)
    await port.dataSync(fd)
    port.close(fd)
    const again = port.openAppend(path)
    port.write(again, Buffer.from('!'))
    port.close(again)
    expect(readFileSync(path, 'utf8')).toBe('hello!')
    const reading = port.openRead(path)
    await expect(port.read(-1, bytes, 0)).rejects.toThrow(/out of range/)
    port.close(reading)
    await expect(port.read(reading, bytes, 0)).rejects.toThrow(/EBADF/)
  })

  test('folders are created with their parents, listed, synced and removed', async () => {
    const port = nodeFilePort()
    const path = join(folder, 'a', 'b')
    expect(port.names(path)).toEqual([])
    port.makeFolder(path)
    await port.syncFolder(path)
    await expect(port.syncFolder(join(folder, 'missing'))).rejects.toThrow(/ENOENT/)
    writeFileSync(join(path, 'c'), '')
    expect(port.names(path)).toEqual(['c'])
    port.remove(join(folder, 'a'))
    port.remove(join(folder, 'a'))
    expect(port.exists(path)).toBe(false)
  })

  test('folders are not synced on systems that cannot, such as Windows', async () => {
    await expect(nodeFilePort({ platform: 'win32' }).syncFolder(join(folder, 'missing'))).resolves.toBeUndefined()
  })

  test('a rename that Windows refuses briefly is retried', async () => {
    const from = join(folder, 'from')
    const to = join(folder, 'busy', 'to')
    writeFileSync(from, 'content')
    const pauses: number[] = []
    const port = nodeFilePort({
      platform: 'win32',
      pause: async (ms) => {
        pauses.push(ms)
        if (pauses.length === 3) mkdirSync(join(folder, 'busy'))
      },
    })
    await port.rename(from, to)
    expect(existsSync(to)).toBe(true)
    expect(pauses).toEqual([50, 50, 50])
  })

  test('a rename that stays refused fails after two seconds', async () => {
    let waitedMs = 0
    const port = nodeFilePort({
      platform: 'win32',
      pause: async (ms) => {
        waitedMs += ms
      },
    })
    await expect(port.rename(join(folder, 'a'), join(folder, 'b'))).rejects.toThrow(/ENOENT/)
    expect(waitedMs).toBe(2000)
  })

  test('on other systems a rename is tried once', async () => {
    await expect(nodeFilePort({ platform: 'linux' }).rename(join(folder, 'a'), join(folder, 'b'))).rejects.toThrow(
      /ENOENT/,
    )
  })

  test('a growing file wakes its waiters, other files do not', async () => {
    const port = nodeFilePort()
    const stop = new AbortController()
    const changed = port.changed(join(folder, 'log'), stop.signal)
    writeFileSync(join(folder, 'other'), 'x')
    writeFileSync(join(folder, 'log'), 'x')
    await changed
    const aborted = port.changed(join(folder, 'log'), stop.signal)
    stop.abort()
    await expect(aborted).resolves.toBeUndefined()
  })

  test('waiting for a file in a missing folder fails', async () => {
    await expect(nodeFilePort().changed(join(folder, 'no', 'log'), new AbortController().signal)).rejects.toThrow(
      /ENOENT/,
    )
  })
})
